//! The topology: which devices there are.

use crate::api::structs::{
    PJRT_TopologyDescription_Attributes_Args, PJRT_TopologyDescription_Destroy_Args,
    PJRT_TopologyDescription_Fingerprint_Args, PJRT_TopologyDescription_GetDeviceDescriptions_Args,
    PJRT_TopologyDescription_PlatformName_Args, PJRT_TopologyDescription_PlatformVersion_Args,
};
use crate::device::DeviceDescription;
use crate::error::Result;
use crate::handles::{self, Handle, as_pointers, object};

/// `PJRT_TopologyDescription`.
#[derive(Debug)]
pub struct Topology {
    /// The platform's name.
    pub platform_name: String,
    /// The compiler's build.
    pub platform_version: String,
    /// Its devices.
    pub descriptions: Box<[Handle<DeviceDescription>]>,
}

object!(Topology, "topology");

pub(crate) fn destroy(args: &mut PJRT_TopologyDescription_Destroy_Args) -> Result<()> {
    handles::destroy(args.topology)
}

pub(crate) fn platform_name(args: &mut PJRT_TopologyDescription_PlatformName_Args) -> Result<()> {
    let topology = handles::get(args.topology)?;
    (args.platform_name, args.platform_name_size) =
        (topology.platform_name.as_ptr().cast(), topology.platform_name.len());
    Ok(())
}

pub(crate) fn platform_version(args: &mut PJRT_TopologyDescription_PlatformVersion_Args) -> Result<()> {
    let topology = handles::get(args.topology)?;
    (args.platform_version, args.platform_version_size) =
        (topology.platform_version.as_ptr().cast(), topology.platform_version.len());
    Ok(())
}

pub(crate) fn device_descriptions(
    args: &mut PJRT_TopologyDescription_GetDeviceDescriptions_Args,
) -> Result<()> {
    let topology = handles::get(args.topology)?;
    (args.descriptions, args.num_descriptions) =
        (as_pointers(&topology.descriptions), topology.descriptions.len());
    Ok(())
}

/// It has none.
pub(crate) fn attributes(args: &mut PJRT_TopologyDescription_Attributes_Args) -> Result<()> {
    handles::get(args.topology)?;
    (args.attributes, args.num_attributes) = (std::ptr::null(), 0);
    Ok(())
}

/// FNV-1a of what programs depend on, which the version says.
pub(crate) fn fingerprint(args: &mut PJRT_TopologyDescription_Fingerprint_Args) -> Result<()> {
    let topology = handles::get(args.topology)?;
    let all = topology.platform_name.bytes().chain([0]).chain(topology.platform_version.bytes());
    let hash = all.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    args.fingerprint = hash as usize;
    Ok(())
}
