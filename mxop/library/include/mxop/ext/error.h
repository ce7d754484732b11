/* MX_ERROR_MSG << "why": the text of the error that Python raises when the function returns MX_FAIL. */
#ifndef MXOP_EXT_ERROR_H_
#define MXOP_EXT_ERROR_H_

#include <memory>

#include "types.h"

namespace mxnet {
namespace ext {

/* The messages of the running thread: functions run in several threads at once, and each reports its own. */
class MXerrorMsgs {
 public:
  PRIVATE_SYMBOL static MXerrorMsgs* get() {
    static thread_local MXerrorMsgs messages;
    return &messages;
  }

  std::stringstream& add(const char* file, int line) {
    messages_.emplace_back(new std::stringstream());
    *messages_.back() << file << "[" << line << "]: ";
    return *messages_.back();
  }

  int size() const { return static_cast<int>(messages_.size()); }

  const std::string* get(int idx) {
    text_ = messages_.at(static_cast<size_t>(idx))->str();
    return &text_;
  }

  void clear() { messages_.clear(); }

 private:
  MXerrorMsgs() {}
  std::vector<std::unique_ptr<std::stringstream>> messages_;
  std::string text_;
};

#define MX_ERROR_MSG mxnet::ext::MXerrorMsgs::get()->add(__FILE__, __LINE__)

namespace detail PRIVATE_SYMBOL {

/* What mxop offers; set when the library is loaded. */
inline const MXOPHost*& host() {
  static const MXOPHost* offered = nullptr;
  return offered;
}

inline int fail(const std::string& text) {
  if (host() != nullptr && host()->error != nullptr) host()->error(text.c_str());
  return 1;
}

/* Report what the user's function said before it returned MX_FAIL. */
inline int fail_with_messages() {
  MXerrorMsgs* messages = MXerrorMsgs::get();
  std::string text;
  for (int i = 0; i < messages->size(); ++i) {
    std::string one = *messages->get(i);
    while (!one.empty() && (one.back() == '\n' || one.back() == ' ')) one.pop_back();
    text += (i ? "\n" : "") + one;
  }
  messages->clear();
  return fail(text);
}

/* Call a function of the user's: what it throws or says becomes an error of mxop's, and never passes the C border. */
template <typename Function>
inline int guarded(Function function) noexcept {
  try {
    MXerrorMsgs* messages = MXerrorMsgs::get();
    if (messages->size() != 0) messages->clear();
    try {
      return function() == MX_SUCCESS ? 0 : fail_with_messages();
    } catch (const std::exception& error) {
      MXerrorMsgs::get()->add("exception", 0).str(error.what());
    } catch (...) {
      MXerrorMsgs::get()->add("exception", 0).str("an exception that is not a std::exception");
    }
    return fail_with_messages();
  } catch (...) {
    return 1; /* no memory for the message */
  }
}

}  // namespace detail
}  // namespace ext
}  // namespace mxnet

#endif /* MXOP_EXT_ERROR_H_ */
