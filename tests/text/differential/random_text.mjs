// Seeded texts with what tokenizers get wrong, without what the JavaScript implementations are known to get
// wrong themselves: U+0085 and U+FEFF, which JavaScript's \s judges differently from Unicode, and
// characters that are unassigned in the Unicode version of one of the engines.

// mulberry32
export function generator(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const blocks = [
  [0x61, 0x7a], [0x41, 0x5a], [0x30, 0x39], [0x20, 0x7e], [0xa1, 0x17f], [0x300, 0x36f], [0x370, 0x3ff],
  [0x400, 0x52f], [0x5d0, 0x5ea], [0x620, 0x6ff], [0x905, 0x939], [0xe01, 0xe3a], [0x1e00, 0x1eff],
  [0x2010, 0x2027], [0x2070, 0x218f], [0x2190, 0x22ff], [0x3041, 0x30ff], [0x4e00, 0x9fa5], [0xac00, 0xd7a3],
  [0x1f300, 0x1f64f], [0x1d400, 0x1d7ff],
];

const phrases = [
  " ", "  ", "\n", "\r\n", "\n\n ", "\t", "   \n", "'s", "'LL", "'re ", "'T", " the", "don't", " 123", "1234567",
  "3.5", "...", "_x", " =>", "{\n", "    ", "        return x;\n", "\u00a0", "\u3000", "é", "e\u0301", "👩‍👩‍👧", "🇩🇪",
  "https://example.org/a?b=c&d=%20", "CamelCaseWord", "snake_case_word", "MiXeD", "ß", "İ", "ſ", "\u200d", "½", "Ⅷ",
];

function character(random) {
  const [first, last] = blocks[random(blocks.length)];
  while (true) {
    const c = String.fromCodePoint(first + random(last - first + 1));
    if (!/\p{Cn}/u.test(c)) return c;
  }
}

export function text(random, parts) {
  let out = "";
  for (let i = random(parts + 1); i > 0; --i) {
    if (random(2) === 0) {
      out += phrases[random(phrases.length)];
    } else {
      for (let j = random(6) + 1; j > 0; --j) out += character(random);
    }
  }
  return out;
}
