// One question, as an iterator over pieces:  rustc -l inferno question.rs && ./question MODEL [QUESTION]
use std::ffi::{CStr, CString};
use std::io::Write;
use std::os::raw::{c_char, c_void};

const OK: i32 = 0;
const CONTENT: i32 = 1;
const END: i32 = 6;
type Handle = u64; // a struct with one number is passed as the number

#[repr(C)]
struct Error { size: usize, status: i32, what: [c_char; 1024], why: [c_char; 512], next: [c_char; 512] }

#[repr(C)]
struct Part { size: usize, kind: i32, status: i32, call: i32, length: usize, id: [c_char; 128], text: [u8; 1024] }

#[link(name = "inferno")]
extern "C" {
    fn inferno_model_load(name: *const c_char, options: *const c_void, model: *mut Handle, e: *mut Error) -> i32;
    fn inferno_model_unload(model: Handle, e: *mut Error) -> i32;
    fn inferno_request_from_json(json: *const c_char, request: *mut Handle, e: *mut Error) -> i32;
    fn inferno_request_add_message(r: Handle, role: *const c_char, text: *const c_char, e: *mut Error) -> i32;
    fn inferno_request_free(request: Handle, e: *mut Error) -> i32;
    fn inferno_ask(model: Handle, request: Handle, answer: *mut Handle, e: *mut Error) -> i32;
    fn inferno_answer_next(answer: Handle, milliseconds: i64, part: *mut Part, e: *mut Error) -> i32;
    fn inferno_answer_free(answer: Handle, e: *mut Error) -> i32;
}

fn check(call: impl FnOnce(*mut Error) -> i32) -> Result<(), String> {
    let mut error: Error = unsafe { std::mem::zeroed() };
    error.size = std::mem::size_of::<Error>();
    if call(&mut error) == OK { return Ok(()); }
    Err(unsafe { CStr::from_ptr(error.what.as_ptr()) }.to_string_lossy().into_owned())
}

struct Answer(Handle);

impl Iterator for Answer {
    type Item = Result<Vec<u8>, String>;
    fn next(&mut self) -> Option<Self::Item> {
        let mut part: Part = unsafe { std::mem::zeroed() };
        part.size = std::mem::size_of::<Part>();
        loop {
            let result = check(|e| unsafe { inferno_answer_next(self.0, -1, &mut part, e) });
            if let Err(problem) = result { return Some(Err(problem)); }
            if part.kind == END { return None; }
            if part.kind == CONTENT { return Some(Ok(part.text[..part.length].to_vec())); }
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) { unsafe { inferno_answer_free(self.0, std::ptr::null_mut()) }; }
}

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let name = CString::new(arguments.next().ok_or("usage: question MODEL [QUESTION]")?).unwrap();
    let question = CString::new(arguments.next().unwrap_or("Tell me a story.".into())).unwrap();
    let fields = CString::new(r#"{"max_tokens": 40, "seed": 7}"#).unwrap();
    let role = CString::new("user").unwrap();
    let (mut model, mut request, mut answer): (Handle, Handle, Handle) = (0, 0, 0);
    unsafe {
        check(|e| inferno_model_load(name.as_ptr(), std::ptr::null(), &mut model, e))?;
        check(|e| inferno_request_from_json(fields.as_ptr(), &mut request, e))?;
        check(|e| inferno_request_add_message(request, role.as_ptr(), question.as_ptr(), e))?;
        check(|e| inferno_ask(model, request, &mut answer, e))?;
    }
    for piece in Answer(answer) {
        std::io::stdout().write_all(&piece?).map_err(|e| e.to_string())?;
    }
    println!();
    check(|e| unsafe { inferno_request_free(request, e) })?;
    check(|e| unsafe { inferno_model_unload(model, e) })
}
