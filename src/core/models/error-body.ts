import type { JsonObject } from '../../../machines/agent/json.js'
import { readWaitMs, asJsonText, asList, asObject, asText } from '../base/values.js'
import type { ModelFailure, RefusedContent } from '../../../machines/agent/model-response.js'
import type { MediaKind } from '../../../machines/agent/refusals.js'

export interface ErrorBody extends Pick<ModelFailure, 'code' | 'message' | 'status' | 'retryAfterMs'> {
  type: string
  param: string
}

/**
 * Reads an error body: `{ error: { message, type, code } }` (OpenAI), `{ error: '…' }` (xAI, Ollama), `{ object:
 * 'error', message, … }` (vLLM, Mistral), `{ detail }` (FastAPI), `[{ error }]` (Gemini), or plain text.
 */
export function readErrorBody(body: unknown): ErrorBody {
  if (typeof body === 'string') return { ...emptyErrorBody, message: isMarkup(body) ? '' : body.trim() }
  const outer = asObject(Array.isArray(body) ? body[0] : body)
  if (outer === null) return emptyErrorBody
  const error = asObject(outer.error) ?? outer
  return {
    code: readWord(error.code),
    type: readWord(error.type === 'error' ? undefined : error.type) || readWord(error.status),
    param: asText(error.param),
    message: readMessage(error) || asText(outer.error),
    status: readStatus(error.code) ?? readStatus(error.status) ?? readStatus(error.status_code),
    retryAfterMs: readRetryInfoMs(error.details),
  }
}

const emptyErrorBody: ErrorBody = {
  code: '',
  type: '',
  param: '',
  message: '',
  status: null,
  retryAfterMs: null,
}

/** Whether an `error` field is non-empty. Some servers add an empty one to every response. */
export function hasError(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return Boolean(error)
  return Object.values(error).some((value) => value !== null && value !== '')
}

export function isMarkup(text: string): boolean {
  return text.trimStart().startsWith('<')
}

function readMessage(error: JsonObject): string {
  const message = asJsonText(error.message ?? error.detail)
  // Gateways such as OpenRouter put the upstream error here.
  const upstream = asText(asObject(error.metadata)?.raw)
  return upstream === '' ? message : `${message}: ${upstream}`
}

/** Returns '' for numeric codes, which are statuses. */
export function readWord(value: unknown): string {
  const text = asText(value)
  return /^\d*$/.test(text) ? '' : text
}

function readStatus(value: unknown): number | null {
  const status = typeof value === 'string' ? Number(value) : value
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599
    ? status
    : null
}

function readRetryInfoMs(details: unknown): number | null {
  const delays = asList(details).map((detail) => asText(asObject(detail)?.retryDelay))
  const delay = delays.find((text) => /^\d{1,9}(\.\d+)?s$/.test(text))
  return delay === undefined ? null : readWaitMs(Number.parseFloat(delay) * 1000)
}

type ErrorWords = Pick<ErrorBody, 'code' | 'type' | 'param' | 'message'>

/** The content that a provider refused, or null. Each pattern matches the words of at least one provider. */
export function findRefusedContent(status: number | null, words: ErrorWords): RefusedContent | null {
  if (isAboutSettings(words)) return null
  if (status === null || contentStatuses.has(status))
    return findRefusedReasoning(words) ?? findFlagged(words) ?? findRefusedMedia(status, words)
  // Local servers respond with 500 if a model takes no images.
  const media = status >= 500 ? findRefusedMedia(status, words) : null
  return media?.what === 'media' && media.never ? media : null
}

/** For rejected parts of a request, OpenRouter and OpenAI respond with 404, and xAI responds with 403. */
const contentStatuses = new Set([400, 403, 404, 415, 422, 451])

/** Whether the error is about a setting. Tool and model names can contain any of the words that describe content. */
function isAboutSettings({ code, param, message }: ErrorWords): boolean {
  return (
    /^(tools?|functions?|tool_choice|response_format|text\.format|model|temperature|reasoning|thinking)\b/.test(
      param,
    ) ||
    /model_?not_?found|deploymentnotfound|unsupported_parameter|unsupported_value/i.test(code) ||
    /\btools?[.[]\d|invalid schema|input_schema|function_?declarations?|\breasoning[._]?effort|budget_tokens|thinking\.(type|budget)/i.test(
      message,
    )
  )
}

function findRefusedReasoning({ code, param, message }: ErrorWords): RefusedContent | null {
  const isNamed = /encrypted_content|thinking_signature|thought_?signature/i.test(`${code} ${param}`)
  if (isNamed || reasoningSentences.some((sentence) => sentence.test(message))) return { what: 'reasoning' }
  const named = `${param} ${message}`
  if (!storedReasoning.test(named) || /\bmissing\b|must be (passed|provided|included|present)/i.test(named))
    return null
  if (unknownField.test(message)) return { what: 'reasoning', never: true }
  return problem.test(message) ? { what: 'reasoning' } : null
}

const reasoningSentences = [
  /encrypted[_ ]content[^]{0,200}(verif|decrypt|decod|pars|invalid|expired)/i, // OpenAI
  /without its required (following|'?reasoning)/i, // OpenAI
  /\bitem (with id )?['"`]?(rs|fc|msg|ws|ig|ci|mcp)_\w*['"`]? not found/i, // OpenAI
  /(invalid|corrupted|expired|malformed)[^.]{0,20}signature[^.]{0,40}(thinking|thought|reasoning)/i, // Anthropic
  /(thinking|thought|reasoning)[_\w`'" ]{0,30}signature[^.]{0,60}(not valid|invalid|corrupt|expired|mismatch|verif|decod)/i,
  /(invalid|corrupted|expired) thought[_ ]?signature/i, // Gemini
  /thinking[`'"]* blocks?[^.]{0,80}cannot be modified/i, // Anthropic
]

const storedReasoning =
  /\b(messages|input|contents)\b[^]{0,120}\b(reasoning(_content|_details)?|(redacted_)?thinking|thought_?signature|signature|encrypted_content)\b|\breasoning_(content|details)\b/i

const unknownField =
  /extra (inputs?|fields?)|not permitted|unsupported|unknown|unrecognized|unexpected|additional propert|\bremove\b|not (supported|allowed|included)/i

function findFlagged({ code, type, message }: ErrorWords): RefusedContent | null {
  const isFlagged = flaggedCodes.test(`${code} ${type}`) || flaggedSentences.some((one) => one.test(message))
  if (!isFlagged) return null
  const kinds = findKinds(`${code.replaceAll('_', ' ')} ${message}`)
  return kinds.includes('image') ? { what: 'media', kinds } : { what: 'messages' }
}

const flaggedCodes =
  /content_?(filter|policy|moderation|blocked)|moderation|responsible_?ai|data_?inspection|sensitive|policy_?violation|safety|flagged|prompt_?blocked/i

const flaggedSentences = [
  /content (management|filter(ing)?|moderation|safety|usage) (polic|system)/i, // Azure, Anthropic
  /content exists risk/i, // DeepSeek
  /inappropriate content/i, // Alibaba
  /\bflagged\b/i, // OpenAI, OpenRouter
  /violat\w* [^.]{0,60}(polic|guideline|terms)/i, // xAI, OpenAI
  /(for|by|our|of) (our )?safety (reasons|system|check|filter|polic|setting)/i, // OpenAI
  /considered high risk/i, // Moonshot
  /sensitive (content|information|words?)|new_sensitive/i, // MiniMax, Volcengine
  /prohibited[_ ]content/i, // Gemini
  /不安全|敏感|违规/, // Zhipu, Baidu
]

function findRefusedMedia(status: number | null, words: ErrorWords): RefusedContent | null {
  const { code, param, message } = words
  const text = withoutModelNames(message)
  if (status === 404 && !/support/i.test(text)) return null
  if (/content\b[^.]{0,40}(must|should) be a (valid )?string/i.test(text))
    return { what: 'media', never: true }
  const kinds = findKinds(`${code.replaceAll('_', ' ')} ${param} ${text}`)
  const isNamed =
    mediaCodes.test(code) ||
    mediaPaths.test(`${param} ${text}`) ||
    text.split(/(?<=[.!?])\s+/).some(isMediaProblem)
  if (!isNamed) return null
  const never = neverWords.test(text) && !/\b\w+\/[\w.+*-]+|\b(format|mime|media[_ ]type)/i.test(text)
  return { what: 'media', ...(kinds.length > 0 && { kinds }), ...(never && { never }) }
}

function isMediaProblem(sentence: string): boolean {
  return (
    (findKinds(sentence).length > 0 || /\b(mime|media)[_ -]?type\b|\bbase64\b/i.test(sentence)) &&
    problem.test(sentence)
  )
}

/** Removes model names, because `gpt-image-1` is a model and not an image. */
const withoutModelNames = (text: string): string =>
  text.replaceAll(/\b(gpt|chatgpt|claude|gemini|grok|llama|qwen|dall)[\w.:/-]*-[\w.:/-]*/gi, '')

const kindWords: readonly [MediaKind, RegExp][] = [
  ['image', /\b(input_)?(image|picture|photo|vision|multi-?modal|png|jpe?g|gif|webp)(s|_\w+)?\b|image\(s\)/i],
  ['audio', /\b(input_)?(audio|sound|speech|wav|mp3)(s|_\w+)?\b/i],
  ['file', /\b(input_)?(file|document|pdf|attachment)(s|_\w+)?\b|functionality not supported/i],
]

function findKinds(text: string): MediaKind[] {
  const kinds = kindWords.flatMap(([kind, words]) => (words.test(text) ? [kind] : []))
  // Media of other kinds are called files, too.
  return kinds.includes('file') && kinds.length > 1 && !/\b(pdf|document)/i.test(text)
    ? kinds.filter((kind) => kind !== 'file')
    : kinds
}

const mediaCodes =
  /unsupported_content|(image|audio|file|media|mime|pdf|document)_?\w*(invalid|unsupported|error|large|small|found|format|parse|decode|policy)|(invalid|unsupported|empty|failed|corrupt|bad)\w*_?(image|audio|file|media|mime|pdf|document)/i

const mediaPaths =
  /\b(source\.(base64|url|media_type|data)|inline_?data|file_?data|image_url|input_audio|input_image|input_file)\b/i

const problem =
  /invalid|unsupported|corrupt|malformed|unrecognized|unknown|exceed|maximum|protected|unable|failed|fails|cannot|can't|could ?n[o']t|decode|download|appears to be|at most|missing|too (large|big|small|many|long)|has no\b|must be|expected|input should be|\bnot\b|n't\b|no endpoints/i

const neverWords =
  /(does|do|is|are)( not|n't) (\w+ ){0,4}?(support|accept|enabled|multi-?modal|vision|available)|(support|enabled)\w* (only )?(by|for|with) (this|the|certain) model|only supported by|not supported (by|for|with)|unknown variant|no endpoints found|at most 0|missing data required|input is not supported/i
