//! Uses the Rust module of an object.

mod model;

fn main() {
    let mut model = model::Model::new();
    for (n, x) in model.arg_x_mut().iter_mut().enumerate() {
        *x = n as f32;
    }
    model.arg1_mut().fill(1.0);
    model.var_scale_mut()[0] = 2.0;
    model.var_steps_mut()[0] = 7;
    model.run().unwrap();
    assert_eq!(model.result_y(), [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
    assert_eq!((model.var_steps()[0], model.result1()[0], model.result2()[0]), (8, 8, 42.0));
    assert_eq!((model::Model::argument_index("x"), model::Model::result_index("none")), (Some(0), None));
    assert!(model::Model::PROGRAM_SHAPE.ends_with("-> (f32[2,3], s32[], f32[])"));
    assert_eq!(model.profile_counters().len(), model::Model::STEPS.len());
    assert_eq!(model.arg0().len(), 6);
    println!("ok");
}
