/* JSON values: what graphs are written in. */
#ifndef MXOP_EXT_JSON_H_
#define MXOP_EXT_JSON_H_

#include <limits.h>

#include "error.h"

namespace mxnet {
namespace ext {

enum JsonType { ERR, STR, NUM, LIST, MAP };

struct JsonVal {
  JsonVal() : type(ERR), num(-1) {}
  explicit JsonVal(JsonType t) : type(t), num(-1) {}
  explicit JsonVal(std::string s) : type(STR), num(-1), str(std::move(s)) {}
  explicit JsonVal(int n) : type(NUM), num(n), str(std::to_string(n)) {}
  JsonVal(JsonType t, int n, std::string s) : type(t), num(n), str(std::move(s)) {}

  bool operator<(const JsonVal& other) const {
    if (type != other.type) return type < other.type;
    if (type == NUM && num != other.num) return num < other.num;
    if (type == LIST) return list < other.list;
    if (type == MAP) return map < other.map;
    return str < other.str;
  }

  /* Return JSON text. */
  std::string dump() const {
    std::string text;
    write(&text);
    return text;
  }

  /* Return the value of JSON text; type ERR, and a message, when it is none. */
  static JsonVal parse(const std::string& json) {
    unsigned int idx = 0;
    JsonVal found = parse(json, &idx);
    skip_space(json, &idx);
    if (found.type != ERR && idx < json.size()) return error(json, idx, "the end");
    return found;
  }
  /* Parse one value that begins at or after `idx`, and move `idx` behind it. */
  static JsonVal parse(const std::string& json, unsigned int* idx) { return parse_any(json, idx, 0); }
  static JsonVal parse_string(const std::string& json, unsigned int* idx);
  static JsonVal parse_num(const std::string& json, unsigned int* idx);
  static JsonVal parse_list(const std::string& json, unsigned int* idx) { return parse_items(json, idx, 0); }
  static JsonVal parse_map(const std::string& json, unsigned int* idx) { return parse_pairs(json, idx, 0); }

  /* Return a description, with types, for debugging. */
  std::string toString() const;

  JsonType type;
  int num;
  std::string str; /* of a number: as it was written */
  std::vector<JsonVal> list;
  std::map<JsonVal, JsonVal> map;

 private:
  enum { kMaxDepth = 200 };

  static bool skip_space(const std::string& json, unsigned int* idx) {
    while (*idx < json.size() && strchr(" \t\r\n", json[*idx]) != nullptr) ++*idx;
    return *idx < json.size();
  }
  static JsonVal error(const std::string& json, unsigned int idx, const char* expected) {
    MX_ERROR_MSG << "JSON: expected " << expected << " at character " << idx << ", found '" << json.substr(idx, 20) << "'";
    return JsonVal(ERR);
  }
  static JsonVal parse_any(const std::string& json, unsigned int* idx, int depth) {
    if (depth > kMaxDepth || !skip_space(json, idx)) return error(json, *idx, "a value");
    const char c = json[*idx];
    if (c == '"') return parse_string(json, idx);
    if (c == '[') return parse_items(json, idx, depth);
    if (c == '{') return parse_pairs(json, idx, depth);
    if (c == '-' || (c >= '0' && c <= '9')) return parse_num(json, idx);
    for (const char* word : {"true", "false", "null"})
      if (json.compare(*idx, strlen(word), word) == 0) {
        *idx += static_cast<unsigned int>(strlen(word));
        return JsonVal(NUM, strcmp(word, "true") == 0 ? 1 : 0, word);
      }
    return error(json, *idx, "a value");
  }
  static JsonVal parse_items(const std::string& json, unsigned int* idx, int depth) {
    JsonVal result(LIST);
    ++*idx;
    if (skip_space(json, idx) && json[*idx] == ']') return ++*idx, result;
    for (;;) {
      result.list.push_back(parse_any(json, idx, depth + 1));
      if (result.list.back().type == ERR) return JsonVal(ERR);
      if (!skip_space(json, idx)) return error(json, *idx, "',' or ']'");
      const char c = json[(*idx)++];
      if (c == ']') return result;
      if (c != ',') return error(json, *idx - 1, "',' or ']'");
    }
  }
  static JsonVal parse_pairs(const std::string& json, unsigned int* idx, int depth) {
    JsonVal result(MAP);
    ++*idx;
    if (skip_space(json, idx) && json[*idx] == '}') return ++*idx, result;
    for (;;) {
      if (!skip_space(json, idx) || json[*idx] != '"') return error(json, *idx, "a string");
      const JsonVal key = parse_string(json, idx);
      if (key.type == ERR) return key;
      if (!skip_space(json, idx) || json[*idx] != ':') return error(json, *idx, "':'");
      ++*idx;
      const JsonVal value = parse_any(json, idx, depth + 1);
      if (value.type == ERR) return value;
      result.map[key] = value;
      if (!skip_space(json, idx)) return error(json, *idx, "',' or '}'");
      const char c = json[(*idx)++];
      if (c == '}') return result;
      if (c != ',') return error(json, *idx - 1, "',' or '}'");
    }
  }
  void write(std::string* text) const;
  static void write_string(const std::string& from, std::string* text);
  static void write_character(unsigned int code, std::string* text);
};

inline JsonVal JsonVal::parse_num(const std::string& json, unsigned int* idx) {
  const unsigned int start = *idx;
  while (*idx < json.size() && strchr("+-.eE0123456789", json[*idx]) != nullptr) ++*idx;
  JsonVal result(NUM, 0, json.substr(start, *idx - start));
  char* end = nullptr;
  const double value = strtod(result.str.c_str(), &end);
  if (end == result.str.c_str() || *end != 0) return error(json, start, "a number");
  result.num = value >= INT_MAX ? INT_MAX : value <= INT_MIN ? INT_MIN : static_cast<int>(value);
  return result;
}

inline JsonVal JsonVal::parse_string(const std::string& json, unsigned int* idx) {
  JsonVal result(STR);
  for (++*idx; *idx < json.size(); ++*idx) {
    const char c = json[*idx];
    if (c == '"') return ++*idx, result;
    if (c != '\\') {
      result.str += c;
      continue;
    }
    if (++*idx >= json.size()) break;
    const char *names = "bfnrt", *meanings = "\b\f\n\r\t";
    const char* known = strchr(names, json[*idx]);
    if (known != nullptr && *known != 0) {
      result.str += meanings[known - names];
    } else if (json[*idx] == 'u' && *idx + 4 < json.size()) {
      unsigned int code = static_cast<unsigned int>(strtoul(json.substr(*idx + 1, 4).c_str(), nullptr, 16));
      *idx += 4;
      if (code >= 0xD800 && code < 0xDC00 && json.compare(*idx + 1, 2, "\\u") == 0 && *idx + 6 < json.size()) {
        code = 0x10000 + ((code - 0xD800) << 10) +
               (static_cast<unsigned int>(strtoul(json.substr(*idx + 3, 4).c_str(), nullptr, 16)) - 0xDC00);
        *idx += 6;
      }
      write_character(code, &result.str);
    } else {
      result.str += json[*idx];
    }
  }
  return error(json, *idx > json.size() ? static_cast<unsigned int>(json.size()) : *idx, "the end of a string");
}

inline void JsonVal::write_character(unsigned int code, std::string* text) { /* as UTF-8 */
  if (code < 0x80) {
    *text += static_cast<char>(code);
  } else if (code < 0x800) {
    *text += static_cast<char>(0xC0 | code >> 6);
    *text += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    if (code < 0x10000) {
      *text += static_cast<char>(0xE0 | code >> 12);
    } else {
      *text += static_cast<char>(0xF0 | (code >> 18 & 7));
      *text += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    }
    *text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    *text += static_cast<char>(0x80 | (code & 0x3F));
  }
}

inline void JsonVal::write_string(const std::string& from, std::string* text) {
  const char* digits = "0123456789abcdef";
  *text += '"';
  for (const char c : from) {
    if (c == '"' || c == '\\')
      (*text += '\\') += c;
    else if (c == '\n')
      *text += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      ((*text += "\\u00") += digits[c >> 4 & 15]) += digits[c & 15];
    else
      *text += c;
  }
  *text += '"';
}

inline void JsonVal::write(std::string* text) const {
  const char* separator = "";
  switch (type) {
    case STR:
      return write_string(str, text);
    case NUM:
      *text += str.empty() || strtol(str.c_str(), nullptr, 10) != num ? std::to_string(num) : str;
      return;
    case LIST:
      *text += '[';
      for (const JsonVal& item : list) *text += separator, item.write(text), separator = ", ";
      *text += ']';
      return;
    case MAP:
      *text += '{';
      for (const std::pair<const JsonVal, JsonVal>& pair : map) {
        *text += separator;
        pair.first.write(text);
        *text += ": ";
        pair.second.write(text);
        separator = ", ";
      }
      *text += '}';
      return;
    default:
      *text += "null";
  }
}

inline std::string JsonVal::toString() const {
  std::string text;
  switch (type) {
    case STR:
      return "str(" + str + ")";
    case NUM:
      return "num(" + std::to_string(num) + ")";
    case LIST:
      for (const JsonVal& item : list) text += (text.empty() ? "" : " ") + item.toString();
      return "list(" + text + ")";
    case MAP:
      for (const std::pair<const JsonVal, JsonVal>& pair : map)
        text += (text.empty() ? "" : " ") + pair.first.toString() + " : " + pair.second.toString();
      return "map(" + text + ")";
    default:
      return "error";
  }
}

/* MXNet 1.7's way to the same functions. */
struct JsonParser {
  JsonVal parse_to_json(const std::string& json) { return JsonVal::parse(json); }
  void print_json_val(const JsonVal& val) { std::cout << val.toString() << std::endl; }
  std::string dump(const JsonVal& val) { return val.dump(); }
  JsonVal parse(const std::string& json, unsigned int* idx) { return JsonVal::parse(json, idx); }
};

/* The idx-th shape, or type, of a list: getShapeAt("[[1],[2,3]]", 1) is "[2,3]", getDtypeAt("[1,2]", 1) is "2". */
inline std::string getShapeAt(const std::string& shape, unsigned index) {
  size_t at = 1; /* behind the opening bracket */
  for (unsigned i = 0; at != std::string::npos && at < shape.size(); ++i) {
    const size_t start = shape.find('[', at), end = shape.find(']', at);
    if (start == std::string::npos || end == std::string::npos || end < start) break;
    if (i == index) return shape.substr(start, end - start + 1);
    at = end + 1;
  }
  throw std::runtime_error("getShapeAt: there is no shape " + std::to_string(index) + " in " + shape);
}

inline std::string getDtypeAt(const std::string& dtype, unsigned index) {
  size_t start = 1;
  for (unsigned i = 0; start < dtype.size(); ++i) {
    const size_t end = dtype.find_first_of(",]", start);
    if (end == std::string::npos) break;
    if (i == index && end > start) return dtype.substr(start, end - start);
    start = end + 1;
  }
  throw std::runtime_error("getDtypeAt: there is no type " + std::to_string(index) + " in " + dtype);
}

}  // namespace ext
}  // namespace mxnet

#endif /* MXOP_EXT_JSON_H_ */
