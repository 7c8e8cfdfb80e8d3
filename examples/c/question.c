/* One question, printed as it is answered:  question MODEL [QUESTION] */
#include <inferno/inferno.h>
#include <stdio.h>
#include <stdlib.h>

static inferno_error error = {.size = sizeof error};

static void check(inferno_status status) {
  if (status == INFERNO_OK) return;
  fprintf(stderr, "error: %s\nwhy:   %s\nnext:  %s\n", error.what, error.why, error.next);
  exit(1);
}

int main(int argc, char** argv) {
  inferno_model model;
  inferno_request request;
  inferno_answer answer;
  inferno_part part = {.size = sizeof part};

  if (argc < 2) return fputs("usage: question MODEL [QUESTION]\n", stderr), 2;
  check(inferno_model_load(argv[1], NULL, &model, &error));
  check(inferno_request_new(&request, &error));
  check(inferno_request_add_message(request, "user", argc > 2 ? argv[2] : "Tell me a story.", &error));
  check(inferno_request_set_integer(request, "max_tokens", 40, &error));
  check(inferno_request_set_integer(request, "seed", 7, &error));
  check(inferno_ask(model, request, &answer, &error));
  do {
    check(inferno_answer_next(answer, -1, &part, &error));
    if (part.kind == INFERNO_PART_CONTENT) fwrite(part.text, 1, part.length, stdout);
  } while (part.kind != INFERNO_PART_END);
  putchar('\n');
  check(inferno_answer_free(answer, &error));
  check(inferno_request_free(request, &error));
  check(inferno_model_unload(model, &error));
  return 0;
}
