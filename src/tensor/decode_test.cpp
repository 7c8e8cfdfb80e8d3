// One block of random bits for each quantized format with the values it means, computed by an independent
// implementation of the formats' published procedures; and how decode() treats its arguments.
#include "tensor/format.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace inferno {
namespace {

struct Vector {
  WeightFormat format;
  std::string_view block;        // hexadecimal
  std::array<float, 8> samples;  // every fifth (of 32) or 37th (of 256) element, wrapping, then the last
  double weighted_sum;           // element i counts i + 1 times, so that exchanged elements show
};

const std::array vectors = {
    Vector{.format = WeightFormat::q8_0,
           .block = "9b3ab4a16b63fc7ef019f679598c6e54598b39d17a6f5e079369dc2560f526b4dbab",
           .samples = {-62.7519531f, 104.036133f, 73.4858398f, -96.6049805f, 77.6142578f, 30.550293f,
                       -30.550293f, -70.1831055f},
           .weighted_sum = 6732.6240234375},
    Vector{.format = WeightFormat::q4_0,
           .block = "943a5d702f586cf9d4672926ebb98c6585c4",
           .samples = {4.11132812f, 0.822265625f, 2.46679688f, -3.2890625f, -1.64453125f, -4.93359375f, 0.0f,
                       3.2890625f},
           .weighted_sum = -99.494140625},
    Vector{.format = WeightFormat::q4_1,
           .block = "3dab30382472def2586d02dd78f566ea34139a8c",
           .samples = {0.297241211f, -0.211700439f, 0.184143066f, -0.155151367f, 0.240692139f, -0.324798584f,
                       0.0144958496f, 0.0710449219f},
           .weighted_sum = 46.503021240234375},
    Vector{.format = WeightFormat::q5_0,
           .block = "f93046ddc1a25078ff88e64ea679d94eaf11f03a5e92",
           .samples = {-2.48632812f, -0.310791016f, 2.33093262f, 0.310791016f, -0.310791016f, 0.621582031f,
                       -1.70935059f, 1.39855957f},
           .weighted_sum = -58.4287109375},
    Vector{.format = WeightFormat::q5_1,
           .block = "35378db72893a75e6c8fa4954c31ee9670771d7446a8a98f",
           .samples = {4.93334961f, 7.18554688f, 5.38378906f, 13.4916992f, 1.32983398f, 9.88818359f,
                       11.239502f, 3.1315918f},
           .weighted_sum = 3697.57470703125},
    Vector{
        .format = WeightFormat::q2_k,
        .block =
            "30a05dd6c563aad79d18c4e14c9a73705691dace8d2dd4b5b133490ee170a8410ff03fe475b1414649073890ffec4159"
            "b2774e16d400dbbd759268c66f1ef1344a2d04fecedc1b098e186ff3cea2a0c80bbb7538",
        .samples = {-1.67138672f, -37.1201172f, -6.68554688f, -14.375f, -14.6430664f, -9.56054688f,
                    -22.621582f, -3.89990234f},
        .weighted_sum = -407411.4814453125},
    Vector{
        .format = WeightFormat::q3_k,
        .block =
            "208c79bfed03b28f9ad4320ecbe1ecbe73ff1af4db7d7a88f363585185039949f41c17ad09ab5e6b94c4de6af13ad086"
            "7919dea39bbbdf2b37debe4cd168a52456c9e0105143e898c9a86e4380358170d7806c11e96516d8c021109485b8548b"
            "5ed60fdf1dc04fe694d3ddaa313a",
        .samples = {55.7226562f, -1.54785156f, 6.96533203f, 47.9833984f, -2.32177734f, 0.0f, -65.0097656f,
                    -21.6699219f},
        .weighted_sum = 49951.49169921875},
    Vector{
        .format = WeightFormat::q4_k,
        .block =
            "67aebcb524be7bbbc83c1d3eb22b4e982d4bfff6d30b155a64954b64c8b573157ba13b556f11539d398a93e67e77e465"
            "cb3e1864a08aee8b842d179504308adb87ff323cb9ba37e06361b28421f9714bc4f0eedfcc303480597350dd1212b5ed"
            "1c1a44a12384936d4741938aec84e8efbffd7c5d2e50cf733140e45b285ba90225227bbdba10ea3c6f07c13abaeca61"
            "c",
        .samples = {-43.9499512f, 21.5039062f, -30.9215698f, -54.5073853f, 20.5452881f, -16.489502f,
                    -16.572998f, -0.775878906f},
        .weighted_sum = -632609.1962280273},
    Vector{
        .format = WeightFormat::q5_k,
        .block =
            "eb39e133520e2ac9997ca0a1526f350c07d9d20d1ddf6d1b119dcbde04532e81b3ab61bd78f3c0dc682e0081fc58c3ee"
            "5d4fff6cdaca16eaf75dc99246d54280bc69cdc6f0b07fb867acf961f14c0e1f3d0d7f7fbd5016db07d7899619d5c35b"
            "a96e1f65bd3e249a7d415806605afe23636bba9817d72b8d54c42de5d0970910301f5c542ae2d0af1c0ed4dbeefa775f"
            "e0fd7e3e2c45085eb32387a212bfca353f5df62ed43ff1b86cad5802d5da50ac",
        .samples = {379.992065f, 275.20752f, 271.745117f, 25.1634521f, 337.091187f, 172.122314f, 50.5621338f,
                    1146.125f},
        .weighted_sum = 9411165.933105469},
    Vector{
        .format = WeightFormat::q6_k,
        .block =
            "ef86ff4d93038fb611aceb33e4df50de62de8fcfaf1c6ad8bfd32c2773362a7ecf63eda60e698ef38ca49f510d64dc0c"
            "0a6b80680c505bc9b62bf8f938e64d797b33d168a1ba4fa254f85bee63665a5ceee5f20bd750db35cb9d4ee68f17a8fe"
            "b27f72db922681c9295b0368b953385cd8e12512f3418ffa5c7748896d269e80040269da81c866bcdb41fc4fda4f2283"
            "44d8446ecf200c649f6673c99de6e313852ff1c3b6f4261092ac7d391e9a29ef956cefc0d63d5fa915398403b4634d0b"
            "d8c07134b041bd1d35460c207872a7f4082c",
        .samples = {42.8320312f, 64.059082f, -151.171875f, -0.0f, 30.8642578f, 14.109375f, -157.974609f,
                    18.140625f},
        .weighted_sum = 145443.78369140625},
    Vector{
        .format = WeightFormat::iq3_s,
        .block =
            "31b83531b8867defc2f4306926177461d7c6d32a327c5825e38ae0d54814e5c2da34d1ddc881f92d062f12359e28b7d8"
            "068a9e9edbeeafacf111e67828b17f974dace13098bdbc1faac6854133bebbb9f0b0ae11a45c1d999a57b32f73831372"
            "663d278c1f50006afd5cc6e0c041",
        .samples = {34.0551758f, 65.4907227f, -2.61962891f, 75.9692383f, 3.66748047f, -39.2944336f,
                    20.4331055f, -51.8686523f},
        .weighted_sum = 3466.29296875},
    Vector{.format = WeightFormat::iq4_nl,
           .block = "4c354ef853a62c78bed243b429a4decda997",
           .samples = {29.4638672f, 0.331054688f, 4.30371094f, -3.31054688f, -27.4775391f, 12.5800781f,
                       8.27636719f, 4.30371094f},
           .weighted_sum = 1748.9619140625},
    Vector{
        .format = WeightFormat::iq4_xs,
        .block =
            "50340d1e70a2e4fcd6a4e5a57085b54260b29deebb21fad626493795d9cfe12f2630bb4476cceb2f0fbe8e6b43c66dc1"
            "37619a076842adbbc432fe1a7447eb291bd2aa270e9ed130ab6ba7f2f91ffb20912294b3d670bba0826e524fb7e18e84"
            "489faf8ebe89c95fa62b061493c37aaf7d08b477379c53f4535d8036e28f53498a2a20d5f1a364a2",
        .samples = {94.875f, 700.511719f, -202.148438f, 753.070312f, 121.828125f, 105.117188f, 37.734375f,
                    -114.550781f},
        .weighted_sum = 1928616.57421875},
    Vector{
        .format = WeightFormat::tq2_0,
        .block =
            "7f213a85b3bcfb1460bbb4bfc9d7321d497a9e0ede2815b0d1d0f0f42fcfb69b87572eaf298d7e2c1ad271f52a8e4a6f"
            "94846a3f34d14fb4e7fbe6c1a3707a5b2cb9",
        .samples = {-1.29296875f, -1.29296875f, -1.29296875f, 0.646484375f, 0.646484375f, -0.646484375f,
                    -1.29296875f, -0.0f},
        .weighted_sum = -13225.130859375},
    Vector{.format = WeightFormat::mxfp4,
           .block = "7a30c106f7f4dc9174f8c150f6d5f7e6ea",
           .samples = {0.0f, -0.0625f, 0.0f, -0.03125f, -0.1875f, -0.0625f, -0.125f, -0.125f},
           .weighted_sum = -22.609375},
    Vector{.format = WeightFormat::int4_32,
           .block = "f855a93e0da2487ad737fdca79cef6832e81873cc9",
           .samples = {-3.63807416f, 0.0f, -3.30734015f, -1.32293606f, -3.30734015f, 0.661468029f,
                       -3.30734015f, -0.330734015f},
           .weighted_sum = -769.9487857818604},
    Vector{.format = WeightFormat::int4_64,
           .block = "0e1cf13b0bee956d1125cbc03beb3bb10a6ffffebdc5e0689d7108f4548a7fb11da6f3f05e",
           .samples = {0.0220742412f, -0.0220742412f, -0.0735808089f, 0.0220742412f, -0.0662227273f,
                       -0.0294323228f, 0.0294323228f, -0.0441484824f},
           .weighted_sum = -43.39796062000096},
    Vector{
        .format = WeightFormat::int4_128,
        .block =
            "ce40423d021fcfed0574298dba57667c262faa0978ddd13c13c73235acf8cde4a8c1f3c3e594fdba121f8f798fd36333"
            "57ec25e389684a5df473806251fe7c624406d51728",
        .samples = {0.616526067f, 0.0f, 0.0474250838f, 0.284550488f, 0.237125427f, 0.474250853f, 0.569100976f,
                    0.0f},
        .weighted_sum = 2053.743235439062},
    Vector{.format = WeightFormat::int8_16,
           .block = "27deb73ffd007d118c99bf8538929b518efa9f1c2e",
           .samples = {-363.426178f, -89.0609589f, -247.072327f, -297.348694f, -143.646698f, -140.773773f,
                       -323.205078f, -297.348694f},
           .weighted_sum = -26094.860683918},
    Vector{.format = WeightFormat::int8_32,
           .block = "ba7aab3fb2d5ed5558c398ee4e3e1a2b10ecd02cc66d5f28ae09ad85e6a8f53d68eafd29f6",
           .samples = {46.8888969f, -34.8317528f, -180.857178f, 26.7936554f, -226.406403f, 89.7587509f,
                       -183.536545f, 91.0984344f},
           .weighted_sum = -24378.208332061768},
    Vector{
        .format = WeightFormat::int8_64,
        .block =
            "0cf3bd3f07e2587d8160aa3fefe03e298f1170ce68c6bd7b0ed6490dda42a84a086b3f2b6411de56a5e625fb26beba7a"
            "0c4023f5a686e9ba7a07f336e6d65dcb27e15e99c5",
        .samples = {324.991547f, 44.5193901f, 50.4553108f, 235.952774f, 307.183807f, 127.622253f, 53.4232712f,
                    281.956146f},
        .weighted_sum = 387979.07202243805},
    Vector{.format = WeightFormat::fp8_32,
           .block = "194d5a3f94e7d97a4e2388964623c4b80261af20f4b706439753a43fdaf4956b41ae67c0",
           .samples = {-0.0399721377f, 0.146564499f, -2.55821681f, 0.106592365f, -0.0499651693f, -163.725876f,
                       51.1643333f, -1.70547783f},
           .weighted_sum = -2129.089448434068},
    Vector{
        .format = WeightFormat::fp8_128,
        .block =
            "906ff53fe72322241865182f06a472c92412de1ea748204d89f153657ee3389f2a2e2fdb6033b5be8cc10b9ab581dfbe"
            "c60ecaed026376dd1065c3912cdab63b40f6b29a50be0a3e63274fb9e6fd4bd180cd8c7df292198b990f8298bc52f784"
            "4f4ab39f86c28f30109dd053fa335a1051a8fe6b1bde13a612a0d0cec2fa72819ff205ae",
        .samples = {-115.048027f, -4.31430101f, 10.5460691f, 168.737106f, -0.0337054767f, -38.3493423f,
                    -1.31825864f, -0.838891864f},
        .weighted_sum = -273742.0023592934},
    Vector{.format = WeightFormat::nvfp4_32,
           .block = "3713a53f7078848363e0661239060ca96f0a3f46b496",
           .samples = {330.150116f, 165.075058f, -990.450317f, 660.300232f, 1320.60046f, -330.150116f,
                       -495.225159f, -165.075058f},
           .weighted_sum = 87819.9312210083},
    Vector{.format = WeightFormat::nvfp4_64,
           .block = "5040d13f386c744c3c6662537c3aa1eaf6a715097a2c7d5fb79ae337c773a0a1c29eabbbdb9bb2d1",
           .samples = {-3.26955032f, 470.815247f, 4.90432549f, 156.938416f, 941.630493f, -4.90432549f,
                       941.630493f, -29.4259529f},
           .weighted_sum = 212879.60417461395},
    Vector{.format = WeightFormat::nf4_32,
           .block = "dce1ae3f3e7bea7f624e9d61d386f6b6fde80129",
           .samples = {0.987752557f, 0.987752557f, -0.124398723f, 0.219873726f, -0.124398723f, 0.108727992f,
                       -1.36626768f, -0.717390358f},
           .weighted_sum = 76.608029961586},
    Vector{.format = WeightFormat::nf4_64,
           .block = "493c203f4fe064b725178d2c14854d9ef160bebe76fb1bfdf42ab46e34ad555fa494ae30",
           .samples = {0.625919878f, 0.15404658f, 0.352153152f, -0.625919878f, -0.328653663f, 0.15404658f,
                       0.211507872f, -0.247186705f},
           .weighted_sum = 109.28802939131856},
    Vector{.format = WeightFormat::fp4_32,
           .block = "1cc1053ff307528341f1d8f727e6ae81333d99b0",
           .samples = {0.522477865f, 0.00272123888f, -0.0870796442f, 0.0f, 0.174159288f, -0.0870796442f,
                       -0.00272123888f, -0.522477865f},
           .weighted_sum = 14.6538713760674},
    Vector{.format = WeightFormat::fp4_64,
           .block = "2d380e3f6128f06477666f759daa47ab2caa629f451930f9f5370859cfa1efdfb45e0413",
           .samples = {0.00289346185f, 0.138886169f, 0.138886169f, 0.555544674f, 0.138886169f, -0.370363116f,
                       0.0925907791f, 0.00289346185f},
           .weighted_sum = 36.91478622891009},
};

std::vector<std::byte> bytes_of(std::string_view hexadecimal) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < hexadecimal.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(digit(hexadecimal[i]) * 16 + digit(hexadecimal[i + 1])));
  }
  return bytes;
}

std::vector<float> decoded(WeightFormat format, std::string_view hexadecimal) {
  const std::vector<std::byte> bytes = bytes_of(hexadecimal);
  std::vector<float> values(bytes.size() / block_bytes(format) *
                            static_cast<std::size_t>(block_elements(format)));
  decode(format, bytes, values);
  return values;
}

TEST(Decode, GivesTheValuesOfAnIndependentImplementation) {
  for (const Vector& vector : vectors) {
    SCOPED_TRACE(name_of(vector.format));
    const std::vector<float> values = decoded(vector.format, vector.block);
    const std::size_t step = values.size() == 32 ? 5 : 37;
    for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(values[i * step % values.size()], vector.samples[i]);
    EXPECT_EQ(values.back(), vector.samples.back());
    double sum = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * static_cast<double>(i + 1);
    EXPECT_EQ(sum, vector.weighted_sum);
  }
}

TEST(Decode, HasAVectorForEveryQuantizedFormat) {
  std::set<WeightFormat> covered;
  for (const Vector& vector : vectors) covered.insert(vector.format);
  for (const WeightFormat format : all_formats) {
    EXPECT_TRUE(block_elements(format) == 1 || covered.contains(format)) << name_of(format);
  }
}

TEST(Decode, ReadsPlainNumbers) {
  EXPECT_EQ(decoded(WeightFormat::f64, "000000000000f83f"), std::vector{1.5f});
  EXPECT_EQ(decoded(WeightFormat::f32, "0000c0bf"), std::vector{-1.5f});
  EXPECT_EQ(decoded(WeightFormat::f16, "003e00c0"), (std::vector{1.5f, -2.0f}));
  EXPECT_EQ(decoded(WeightFormat::bf16, "c03f00c0"), (std::vector{1.5f, -2.0f}));
  EXPECT_EQ(decoded(WeightFormat::f8_e4m3, "3cc0"), (std::vector{1.5f, -2.0f}));
  EXPECT_EQ(decoded(WeightFormat::f8_e5m2, "3ec0"), (std::vector{1.5f, -2.0f}));
  EXPECT_EQ(decoded(WeightFormat::i64, "feffffffffffffff0000000001000000"), (std::vector{-2.0f, 0x1p32f}));
  EXPECT_EQ(decoded(WeightFormat::i32, "feffffff00000080"), (std::vector{-2.0f, -0x1p31f}));
  EXPECT_EQ(decoded(WeightFormat::i16, "feff0080"), (std::vector{-2.0f, -32768.0f}));
  EXPECT_EQ(decoded(WeightFormat::i8, "fe80"), (std::vector{-2.0f, -128.0f}));
  EXPECT_EQ(decoded(WeightFormat::u8, "fe80"), (std::vector{254.0f, 128.0f}));
}

TEST(Decode, KeepsSubnormalAndNegativeScales) {
  // Smallest f16 scale, 2^-24: codes 8 + 1 and 8 - 8.
  const std::vector<float> tiny = decoded(WeightFormat::q4_0, "010009000000000000000000000000000000");
  EXPECT_EQ(tiny[0], 0x1p-24f);
  EXPECT_EQ(tiny[1], -0x1p-21f);
  const std::vector<float> negative = decoded(WeightFormat::q4_0, "00bc09000000000000000000000000000000");
  EXPECT_EQ(negative[0], -1.0f);
  EXPECT_EQ(negative[1], 8.0f);
  // A scale of minus zero makes every element a zero, not something else.
  for (const float value : decoded(WeightFormat::q4_0, "0080ffffffffffffffffffffffffffffffff")) {
    EXPECT_EQ(value, 0.0f);
  }
}

TEST(Decode, ReadsBothEndsOfMxfp4sScale) {
  EXPECT_EQ(decoded(WeightFormat::mxfp4, "0002000000000000000000000000000000")[0], 0x1p-127f);
  EXPECT_EQ(decoded(WeightFormat::mxfp4, "fe02000000000000000000000000000000")[0], 0x1p127f);
  EXPECT_TRUE(std::signbit(decoded(WeightFormat::mxfp4, "7f08000000000000000000000000000000")[0]));
  for (const float value : decoded(WeightFormat::mxfp4, "ff02000000000000000000000000000000")) {
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Decode, ReadsBlocksAtAnyAddress) {
  for (const Vector& vector : vectors) {
    std::vector<std::byte> bytes = bytes_of(vector.block);
    bytes.insert(bytes.begin(), std::byte{0xEE});
    std::vector<float> values(static_cast<std::size_t>(block_elements(vector.format)));
    decode(vector.format, std::span(bytes).subspan(1), values);
    EXPECT_EQ(values, decoded(vector.format, vector.block)) << name_of(vector.format);
  }
}

TEST(Decode, RefusesSizesThatDisagree) {
  const std::vector<std::byte> block(18);
  std::vector<float> out(33);
  EXPECT_THROW(decode(WeightFormat::q4_0, block, out), Error);
  EXPECT_THROW(decode(WeightFormat::q4_0, std::span(block).first(17), std::span(out).first(32)), Error);
  EXPECT_NO_THROW(decode(WeightFormat::q4_0, block, std::span(out).first(32)));
}

}  // namespace
}  // namespace inferno
