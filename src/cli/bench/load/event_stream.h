// Reads an HTTP response piece by piece, above all a stream of completions. Costs little for each event: only
// the one with the token counts is parsed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace inferno::load {

class EventStream {
 public:
  // Bytes as they came from the socket.
  void read(std::string_view bytes);
  // The server closed the connection.
  void close();

  int status() const { return status_; }            // 0 until the head is complete
  bool is_whole() const { return is_whole_; }       // the response has ended as HTTP demands
  bool saw_end() const { return saw_end_; }         // data: [DONE]
  int text_events() const { return text_events_; }  // events with a piece of text, reasoning or a call
  // The last event with token counts, or nullopt.
  const std::optional<std::string>& usage_event() const { return usage_event_; }
  // What went wrong: an error event or a response that is not HTTP; empty if nothing did.
  const std::string& problem() const { return problem_; }
  // Of a response that is no event stream, the first 16 MiB.
  const std::string& body() const { return body_; }

 private:
  enum class Part { head, size, chunk, chunk_end, trailer, counted, rest };
  void take_head();
  std::string_view take_framing(std::string_view bytes);
  void take_body(std::string_view bytes);
  void take_line(std::string_view line);

  Part part_ = Part::head;
  int status_ = 0;
  bool is_whole_ = false, saw_end_ = false, has_events_ = false;
  int text_events_ = 0;
  std::size_t left_ = 0;  // bytes of this chunk or of the body
  std::string framing_;   // an incomplete head or line of the chunked coding
  std::string line_;      // an incomplete line of the event stream
  std::string body_, problem_;
  std::optional<std::string> usage_event_;
};

}  // namespace inferno::load
