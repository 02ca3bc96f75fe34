interface AnsweredCall {
  name: string
  readOnly: boolean
  shown: string
}

/**
 * How a result relates to its call.
 * - `under_way` – success, and the work is in progress (a running build, a sleep)
 * - `transient` – a temporary failure, or a report of one (`429 Too Many Requests`)
 * - `absent` – a failure whose error is the answer (a page or a name does not exist)
 * - `absent_named` – `absent`, but the error quotes a word from the arguments, which may be wrong in all of them
 */
export type AnswerMeaning = 'under_way' | 'transient' | 'absent' | 'absent_named' | null

/** A longer output contains more than a status. */
const longest = 300

/** Classifies the first 300 characters of a result. Unknown words and other languages yield `null`. */
export function readAnswer(
  call: AnsweredCall,
  { ok, errorKind, content }: { ok: boolean; errorKind: string | null; content: string },
): AnswerMeaning {
  if (ok) return content.length <= longest ? readSuccess(call, content) : null
  return errorKind === 'failed' ? readFailure(call, content.slice(0, longest)) : null
}

function readSuccess({ name, readOnly }: AnsweredCall, content: string): AnswerMeaning {
  if (reportsTransient.test(content)) return 'transient'
  if (sleeps.test(name)) return 'under_way'
  return underWay.test(content) && (readOnly || !acts.test(name)) ? 'under_way' : null
}

const sleeps = /^(?:sleep|wait|await|delay)(?![a-z])/i

const underWay = new RegExp(
  [
    // An underscore separates words, as in CREATE_IN_PROGRESS.
    String.raw`(?<![a-z\d])(?:pending|queued|scheduled|running|in[ _-]?progress|processing|building|compiling|deploying` +
      String.raw`|provisioning|creating|initiali[sz]ing|preparing|pulling|installing|uploading|downloading|starting|booting` +
      String.raw`|terminating|waiting|awaiting|ongoing|under[ _]?way|eta)(?![a-z\d])`,
    String.raw`\bnot (?:yet )?(?:ready|done|finished|completed?)\b`,
    String.raw`\b(?:nothing|none|no (?:reply|replies|answer|response|messages?|news)) yet\b`,
    String.raw`\bno (?:new|unread) (?:e?mails?|messages?|replies|events?|entries|updates?|notifications?)\b`,
    String.raw`["'](?:is_?)?(?:ready|done|finished|completed?)["']\s?:\s?false\b`,
    String.raw`\b\d+ ?(?:s|sec|seconds?|m|min|minutes?|h|hours?) (?:remaining|left|to go)\b`,
  ].join('|'),
  'i',
)

/** Matches names of tools that perform an action. If the action is in progress, the call should not be repeated. */
const acts = new RegExp(
  '(?:^|[_.-])(?:send|mail|pay|book|create|post|submit|delete|remove|update|write|insert|order|buy|transfer|start|' +
    'trigger|launch|deploy|publish|retry|cancel|approve|add|set|put|upload|charge|refund|restart|rebuild|schedule)(?![a-z])',
  'i',
)

export const transientCodes = (
  'ETIMEDOUT ESOCKETTIMEDOUT ECONNRESET ECONNREFUSED ECONNABORTED EPIPE ENOTFOUND EAI_AGAIN EHOSTUNREACH EHOSTDOWN ' +
  'ENETUNREACH ENETDOWN ERR_NETWORK ERR_STREAM_PREMATURE_CLOSE UND_ERR_CONNECT_TIMEOUT UND_ERR_HEADERS_TIMEOUT ' +
  'UND_ERR_BODY_TIMEOUT UND_ERR_SOCKET'
).split(' ')

const transientText = [
  String.raw`\b(?:tim(?:ed|es)[ -]?out|timeout ?error|timeout (?:exceeded|expired|reached)|deadline[ _]exceeded|rate[ _-]?limit(?:s|ed|ing|[ _]exceeded)?|unreachable|dns)\b`,
  // Excludes `timeout` when it is a name, a value or an option.
  String.raw`(?<![\w'"\x60.$-]|\b(?:invalid|unknown|unsupported|bad|illegal|missing|unexpected|negative|set|option|parameter|argument) )` +
    String.raw`time-?outs?(?![\w'"\x60(.-]|\s?=|[ :]+(?:must|should|is|was not|cannot|needs|values?|param|option|argument|property|field)\b)`,
  String.raw`\bconnection (?:(?:is|was|has been) )?(?:reset|refused|closed|aborted)\b|\bsocket hang up\b`,
  String.raw`\b(?:too many requests|service unavailable|bad gateway|retry[ -]?(?:after|in|later)|try again (?:later|in)|took too long)\b`,
  String.raw`\b(?:(?:did|does) not respond|no response) (?:in time|within|after)\b`,
  String.raw`\b(?:temporarily unavailable|temporary failure|failed to lookup address|name resolution)\b`,
  String.raw`(?:\b(?:https?(?:/[\d.]+)?|status(?:[ _]?code)?|error|code)["']?[ :=(]{1,3}["']?)(?:408|425|429)\b`,
  String.raw`\b429[ :,-]{1,3}(?:too many|slow|rate|quota)|(?:^|: )(?:408|425|429)\W{0,3}$`,
  String.raw`\b(?:${transientCodes.join('|')})\b`,
].join('|')

export const transientWords = new RegExp(String.raw`${transientText}|(?<![\w.,$-])50[234](?!\w|[.,]\d)`, 'i')

/** Only at the start, because other results may merely quote such words. */
const reportsTransient = new RegExp(
  String.raw`^(?:\W{0,8}(?:errors?|failed|failure|request|with|https?|status(?:[ _]?code)?|code|type|message|detail|reason)\b){0,6}` +
    String.raw`\W{0,8}(?:${transientText}|(?:408|425|429|50[234])(?=\W*$|["':,.]|[ -]{1,3}(?:too|request|bad|service|gateway|slow|rate)))`,
  'i',
)

/** Matches `404 Not Found`, `HTTP 410` or `https://a.example/b: 404`, but not a line number or an amount. */
const statuses = new RegExp(
  [
    String.raw`^\W*(?:error\W{0,3})?(?:404|410)\b`,
    String.raw`\b(?:https?|status|code|returned|response|got|error)\W{0,3}(?:code\W{0,3})?(?:of |is |with )?(?:404|410)\b`,
    String.raw`\b(?:404|410)\W{1,3}(?:not found|gone)\b`,
    String.raw`:\s?(?:404|410)\W{0,2}$`,
  ].join('|'),
  'i',
)

const absent = new RegExp(
  [
    String.raw`\bnot found\b|\bno such\b|\bno (?:match(?:es)?|results?|hits?|records?)\b`,
    String.raw`\b(?:does|did|do) ?n[o'\u2019]t exist\b|\bnon-?existent\b`,
    String.raw`\b(?:could ?n[o'\u2019]t|could not|cannot|can't) (?:be found|find)\b`,
  ].join('|'),
  'i',
)

/** The missing item is a requirement of the tool itself. */
const needs = /\b(?:command|module|package|library|executable|interpreter|import)\b/i

const shell =
  /(?:^|[\s:])(?!(?:error|failed|failure|result|status|lookup)\b)[a-z][\w./+-]*: (?:command )?not found\b/i

function readFailure({ shown }: AnsweredCall, content: string): AnswerMeaning {
  if (statuses.test(content)) return 'absent'
  if (transientWords.test(content)) return 'transient'
  if (!absent.test(content) || needs.test(content) || shell.test(content)) return null
  const named = new Set(listWords(content))
  // Argument names are identical in every call, so only values count.
  const argumentWords = listWords(shown.replaceAll(/"[^"\\]{1,64}"\s?:/g, ' '))
  return argumentWords.some((word) => named.has(word)) ? 'absent_named' : 'absent'
}

function listWords(text: string): string[] {
  return (text.toLowerCase().match(/[a-z_]{3,}/g) ?? []).filter((word) => !common.has(word))
}

/** Words that are too common in errors and addresses to count. */
const common: ReadonlySet<string> = new Set(
  (
    'not found such the does exist error failed http https www com org net html page file link url site name user ' +
    'customer item record entry resource key query search result results match could cannot find for with'
  ).split(' '),
)
