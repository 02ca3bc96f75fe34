/** Codes and types by which providers say that a request does not fit the model's window. */
const overflowCodes =
  /^(context_length_exceeded|context_window_exceeded|model_max_prompt_tokens_exceeded|tokens_limit_reached|too_many_prompt_tokens|exceed_context_size_error|request_too_large|string_above_max_length)$/i

/** The same in words, each as at least one provider puts it. */
const overflowSentences = [
  /maximum context length/i, // OpenAI, DeepSeek, vLLM, Mistral, OpenRouter
  /context (length|window|size|limit)[^.]{0,40}\b(exceed|too (long|large|small)|overflow)/i, // MiniMax, LM Studio
  /exceed[^.]{0,60}\bcontext( (length|window|size|limit))?/i, // llama.cpp, Ollama, Anthropic
  /reduce the length of (the|your) (messages|prompt|input)/i, // Groq, OpenAI
  /(prompt|input) (is )?too (long|large)/i, // Anthropic, Bedrock, Ollama
  /input token count[^.]{0,60}exceeds/i, // Gemini
  /maximum prompt length/i, // xAI
  /prompt (length )?exceeds (the )?max(imum)? length/i, // Z.ai
  /exceeded model token limit/i, // Moonshot
  /total number of tokens in the prompt cannot exceed/i, // Cohere
  /`inputs` tokens \+ `max_new_tokens` must be/i, // Text Generation Inference, Together
  /range of input length should be/i, // Alibaba
  /total length of all messages is too long/i,
  /too many tokens: size limit exceeded/i,
  /number of (input|prompt) tokens exceeds (the )?max/i,
]

/** A single request above the allowance of a whole minute: waiting does not help, a shorter request does. */
const exceedsMinuteLimit = /request too large/i

/** Whether an error says that the request is too long for the model. */
export function isContextOverflow(
  status: number | null,
  code: string,
  type: string,
  message: string,
): boolean {
  if (status === 413) return true
  if (status === 401 || status === 403) return false
  if (status === 429) return exceedsMinuteLimit.test(message)
  return (
    overflowCodes.test(code) ||
    overflowCodes.test(type) ||
    overflowSentences.some((sentence) => sentence.test(message))
  )
}
