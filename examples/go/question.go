// One question, streamed through a channel:  go run question.go MODEL [QUESTION]
package main

/*
#cgo LDFLAGS: -linferno
#include <inferno/inferno.h>
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

// check panics with the message of a call that failed.
func check(call func(*C.inferno_error) C.inferno_status) {
	problem := C.inferno_error{size: C.sizeof_inferno_error}
	if call(&problem) != C.INFERNO_OK {
		panic(fmt.Sprintf("%s: %s", C.GoString(&problem.what[0]), C.GoString(&problem.next[0])))
	}
}

func withText(text string, body func(*C.char)) {
	copied := C.CString(text)
	defer C.free(unsafe.Pointer(copied))
	body(copied)
}

func setInteger(request C.inferno_request, name string, value int64) {
	withText(name, func(name *C.char) {
		check(func(e *C.inferno_error) C.inferno_status {
			return C.inferno_request_set_integer(request, name, C.int64_t(value), e)
		})
	})
}

func answerTo(model C.inferno_model, question string, pieces chan<- string) {
	defer close(pieces)
	var request C.inferno_request
	var answer C.inferno_answer
	check(func(e *C.inferno_error) C.inferno_status { return C.inferno_request_new(&request, e) })
	withText("user", func(role *C.char) {
		withText(question, func(text *C.char) {
			check(func(e *C.inferno_error) C.inferno_status {
				return C.inferno_request_add_message(request, role, text, e)
			})
		})
	})
	setInteger(request, "max_tokens", 40)
	setInteger(request, "seed", 7)
	check(func(e *C.inferno_error) C.inferno_status { return C.inferno_ask(model, request, &answer, e) })
	part := C.inferno_part{size: C.sizeof_inferno_part}
	for part.kind != C.INFERNO_PART_END {
		check(func(e *C.inferno_error) C.inferno_status { return C.inferno_answer_next(answer, -1, &part, e) })
		if part.kind == C.INFERNO_PART_CONTENT {
			pieces <- C.GoStringN(&part.text[0], C.int(part.length))
		}
	}
	check(func(e *C.inferno_error) C.inferno_status { return C.inferno_answer_free(answer, e) })
	check(func(e *C.inferno_error) C.inferno_status { return C.inferno_request_free(request, e) })
}

func main() {
	arguments := append(os.Args[1:], "Tell me a story.")
	var model C.inferno_model
	withText(arguments[0], func(name *C.char) {
		check(func(e *C.inferno_error) C.inferno_status { return C.inferno_model_load(name, nil, &model, e) })
	})
	pieces := make(chan string)
	go answerTo(model, arguments[1], pieces)
	for piece := range pieces {
		fmt.Print(piece)
	}
	fmt.Println()
	check(func(e *C.inferno_error) C.inferno_status { return C.inferno_model_unload(model, e) })
}
