#include "hostile/safetensors_seeds.h"

#include <cstring>

#include "support/safetensors_writer.h"

namespace inferno {
namespace {

constexpr auto corrupt = ErrorKind::corrupt;
constexpr auto unsupported = ErrorKind::unsupported;
using Bytes = std::vector<std::byte>;

Bytes file(std::string_view header, std::size_t data_bytes) {
  return safetensors_image(header, Bytes(data_bytes));
}

// A valid file whose first eight bytes claim another length.
Bytes claiming(std::uint64_t length) {
  Bytes image = safetensors_image(std::vector{patterned_tensor("w", "F32", {2, 2})});
  std::memcpy(image.data(), &length, sizeof(length));
  return image;
}

Bytes claiming_one_more() {
  return claiming(safetensors_header(std::vector{patterned_tensor("w", "F32", {2, 2})}).size() + 1);
}

// One tensor with this description, and this much data.
SafetensorsSeed tensor(std::string name, std::optional<ErrorKind> refused, const std::string& description,
                       std::size_t data_bytes) {
  return {std::move(name), refused,
          [header = "{\"w\":" + description + "}", data_bytes] { return file(header, data_bytes); }};
}

std::string nested(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += "{\"a\":";
  return text + "1" + std::string(static_cast<std::size_t>(depth), '}');
}

// Two tensors that conflict.
void add_pairs(std::vector<SafetensorsSeed>& seeds) {
  const char* one = R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  const auto two = [](const std::string& a, const std::string& b) {
    return "{\"a\":" + a + ",\"b\":" + b + "}";
  };
  seeds.push_back({"two tensors at one place", corrupt, [=] { return file(two(one, one), 4); }});
  seeds.push_back({"overlap", corrupt,
                   [=] { return file(two(one, R"({"dtype":"U8","shape":[4],"data_offsets":[2,6]})"), 6); }});
  seeds.push_back({"hole", corrupt, [=] {
                     return file(two(one, R"({"dtype":"U8","shape":[4],"data_offsets":[6,10]})"), 10);
                   }});
  seeds.push_back({"valid in any order", {}, [=] {
                     return file(two(R"({"dtype":"U8","shape":[4],"data_offsets":[4,8]})", one), 8);
                   }});
  seeds.push_back({"tensor given twice", corrupt,
                   [=] { return file("{\"a\":" + std::string(one) + ",\"a\":" + one + "}", 4); }});
}

// Fields of the wrong type, or missing.
std::vector<SafetensorsSeed> field_seeds() {
  return {
      tensor("negative dimension", corrupt, R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})", 1),
      tensor("broken dimension", corrupt, R"({"dtype":"U8","shape":[1.5],"data_offsets":[0,1]})", 1),
      tensor("dimension as a string", corrupt, R"({"dtype":"U8","shape":["1"],"data_offsets":[0,1]})", 1),
      tensor("dimension of null", corrupt, R"({"dtype":"U8","shape":[null],"data_offsets":[0,1]})", 1),
      tensor("shape as a number", corrupt, R"({"dtype":"U8","shape":1,"data_offsets":[0,1]})", 1),
      tensor("nested shape", corrupt, R"({"dtype":"U8","shape":[[1]],"data_offsets":[0,1]})", 1),
      tensor("type of half a byte", unsupported, R"({"dtype":"F4","shape":[2],"data_offsets":[0,1]})", 1),
      tensor("type of six bits", unsupported, R"({"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]})", 3),
      tensor("complex type", unsupported, R"({"dtype":"C64","shape":[1],"data_offsets":[0,8]})", 8),
      tensor("unknown type", unsupported, R"({"dtype":"\u001b[2J","shape":[1],"data_offsets":[0,8]})", 8),
      tensor("type in small letters", unsupported, R"({"dtype":"f32","shape":[1],"data_offsets":[0,4]})", 4),
      tensor("type as a number", corrupt, R"({"dtype":1,"shape":[1],"data_offsets":[0,1]})", 1),
      tensor("type as a list", corrupt, R"({"dtype":["U8"],"shape":[1],"data_offsets":[0,1]})", 1),
      tensor("no type", corrupt, R"({"shape":[1],"data_offsets":[0,1]})", 1),
      tensor("no shape", corrupt, R"({"dtype":"U8","data_offsets":[0,1]})", 1),
      tensor("no place", corrupt, R"({"dtype":"U8","shape":[1]})", 1),
      tensor("nothing said", corrupt, "{}", 0),
      tensor("unknown field", corrupt, R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":"y"})", 1),
      tensor("field given twice", corrupt, R"({"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]})",
             1),
      tensor("a number", corrupt, "1", 0),
      tensor("a list", corrupt, "[]", 0),
      tensor("null", corrupt, "null", 0),
  };
}

}  // namespace

std::vector<SafetensorsSeed> safetensors_file_seeds() {
  return {
      {"valid file", {}, [] { return safetensors_image(std::vector{patterned_tensor("w", "F32", {2, 2})}); }},
      {"valid without tensors", {}, [] { return file("{}", 0); }},
      {"valid with spaces after the header", {}, [] { return file("{}          ", 0); }},
      {"no bytes", corrupt, [] { return Bytes(); }},
      {"seven bytes", corrupt, [] { return Bytes(7); }},
      {"length 0", corrupt, [] { return Bytes(8); }},
      {"length 8 without a header", corrupt,
       [] {
         Bytes b(8);
         b[0] = std::byte{8};
         return b;
       }},
      {"length 100 MB", corrupt, [] { return claiming(100'000'000); }},
      {"length 100 MB + 1", corrupt, [] { return claiming(100'000'001); }},
      {"length 2^32", corrupt, [] { return claiming(std::uint64_t{1} << 32); }},
      {"length 2^63", corrupt, [] { return claiming(std::uint64_t{1} << 63); }},
      {"length 2^64 - 1", corrupt, [] { return claiming(~std::uint64_t{0}); }},
      {"length 2^64 - 8", corrupt, [] { return claiming(~std::uint64_t{7}); }},
      {"length one too many", corrupt, [] { return claiming_one_more(); }},
      {"length one", corrupt, [] { return claiming(1); }},
      {"header is a list", corrupt, [] { return file("[]", 0); }},
      {"header is a number", corrupt, [] { return file("12", 0); }},
      {"header is a string", corrupt, [] { return file("\"{}\"", 0); }},
      {"header is null", corrupt, [] { return file("null", 0); }},
      {"header begins with a space", corrupt, [] { return file(" {}", 0); }},
      {"header ends early", corrupt, [] { return file("{\"w\":{\"dtype\":\"F32\"", 0); }},
      {"two headers", corrupt, [] { return file("{}{}", 0); }},
      {"zeros after the header", corrupt, [] { return file(std::string_view("{}\0\0", 4), 0); }},
      {"a zip file", corrupt, [] { return file("PK\x03\x04", 100); }},
      {"broken UTF-8", corrupt, [] { return file("{\"\xFF\xFE\":{}}", 0); }},
      {"depth 5", corrupt, [] { return file(nested(5), 0); }},
      {"depth 100,000", corrupt, [] { return file(nested(100000), 0); }},
      {"valid metadata", {}, [] { return file(R"({"__metadata__":{"a":"b"}})", 0); }},
      {"metadata of numbers", corrupt, [] { return file(R"({"__metadata__":{"a":1}})", 0); }},
      {"metadata of null", corrupt, [] { return file(R"({"__metadata__":{"a":null}})", 0); }},
      {"metadata that is a list", corrupt, [] { return file(R"({"__metadata__":[]})", 0); }},
      {"metadata that is a string", corrupt, [] { return file(R"({"__metadata__":"a"})", 0); }},
      {"metadata given twice", corrupt, [] { return file(R"({"__metadata__":{},"__metadata__":{}})", 0); }},
      {"metadata key given twice", corrupt, [] { return file(R"({"__metadata__":{"a":"b","a":"b"}})", 0); }},
      {"one byte of data too many", corrupt, [] { return file("{}", 1); }},
  };
}

std::vector<SafetensorsSeed> safetensors_tensor_seeds() {
  std::vector<SafetensorsSeed> seeds = {
      tensor("valid scalar", {}, R"({"dtype":"F32","shape":[],"data_offsets":[0,4]})", 4),
      tensor("valid tensor without elements", {}, R"({"dtype":"F32","shape":[3,0],"data_offsets":[0,0]})", 0),
      tensor("valid mask", {}, R"({"dtype":"BOOL","shape":[3],"data_offsets":[0,3]})", 3),
      tensor("valid eight dimensions", {}, R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1],"data_offsets":[0,1]})",
             1),
      tensor("nine dimensions", corrupt, R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]})",
             1),
      tensor("a hole before it", corrupt, R"({"dtype":"U8","shape":[4],"data_offsets":[4,8]})", 8),
      tensor("swapped offsets", corrupt, R"({"dtype":"U8","shape":[4],"data_offsets":[4,0]})", 4),
      tensor("offsets beyond the file", corrupt, R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", 3),
      tensor("offsets short of the file", corrupt, R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", 5),
      tensor("one offset", corrupt, R"({"dtype":"U8","shape":[4],"data_offsets":[4]})", 4),
      tensor("three offsets", corrupt, R"({"dtype":"U8","shape":[4],"data_offsets":[0,4,4]})", 4),
      tensor("no offsets", corrupt, R"({"dtype":"U8","shape":[0],"data_offsets":[]})", 0),
      tensor("negative offset", corrupt, R"({"dtype":"U8","shape":[4],"data_offsets":[-4,0]})", 4),
      tensor("broken offset", corrupt, R"({"dtype":"U8","shape":[4],"data_offsets":[0.0,4.0]})", 4),
      tensor("offset of 2^63", corrupt,
             R"({"dtype":"U8","shape":[4],"data_offsets":[0,9223372036854775808]})", 4),
      tensor("offset of 2^64", corrupt,
             R"({"dtype":"U8","shape":[4],"data_offsets":[0,18446744073709551616]})", 4),
      tensor("offsets as strings", corrupt, R"({"dtype":"U8","shape":[4],"data_offsets":["0","4"]})", 4),
      tensor("offsets as an object", corrupt, R"({"dtype":"U8","shape":[4],"data_offsets":{"a":0}})", 4),
      tensor("shape smaller than its bytes", corrupt, R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})",
             8),
      tensor("shape larger than its bytes", corrupt, R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})",
             8),
      tensor("shape that overflows", corrupt,
             R"({"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0),
      tensor("bytes that overflow", corrupt,
             R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]})", 0),
      tensor("overflow hidden by a zero", corrupt,
             R"({"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]})", 0),
  };
  add_pairs(seeds);
  for (SafetensorsSeed& seed : field_seeds()) seeds.push_back(std::move(seed));
  return seeds;
}

}  // namespace inferno
