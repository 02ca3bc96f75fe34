/** What is read of a call beside its answer. */
interface AnsweredCall {
  name: string
  readOnly: boolean
  /** The arguments for people. */
  shown: string
}

/**
 * What the words of a result say about its call:
 * - `under_way`: it succeeded, and what it asked about goes on: a build that is running, a sleep
 * - `failing`: it succeeded, and reports a failure: `1 failed, 12 passed`
 * - `absent`: it failed, and the error is the answer: there is no such page, no such name
 * - `absent_named`: the same, but the error names a word of the arguments, which may be what is wrong with all of them
 */
export type AnswerMeaning = 'under_way' | 'failing' | 'absent' | 'absent_named' | null

/** Beyond this an output is more than an answer. */
const longest = 300

/** Reads at most 300 characters of a result. Other words, and other languages, say nothing: `null`. */
export function readAnswer(
  call: AnsweredCall,
  result: { ok: boolean; errorKind: string | null; content: string },
): AnswerMeaning {
  const { ok, errorKind, content } = result
  if (ok) return content.length <= longest ? readSuccess(call, content) : null
  return errorKind === 'failed' ? readFailure(call, content.slice(0, longest)) : null
}

function readSuccess({ name, readOnly }: Omit<AnsweredCall, 'shown'>, content: string): AnswerMeaning {
  if (sleeps.test(name)) return 'under_way'
  if (underWay.test(content) && (readOnly || !acts.test(name))) return 'under_way'
  return failed.test(content) ? 'failing' : null
}

const sleeps = /^(?:sleep|wait|delay)(?![a-z])/i

const underWay = new RegExp(
  [
    String.raw`\b(?:pending|queued|running|in[ _-]?progress|processing|building|compiling|deploying|provisioning|installing)\b`,
    String.raw`\b(?:uploading|downloading|starting|waiting|ongoing|under ?way|eta)\b`,
    String.raw`\bnot (?:yet )?(?:ready|done|finished|completed?)\b`,
    String.raw`\b\d+ ?(?:s|sec|seconds?|m|min|minutes?|h|hours?) (?:remaining|left|to go)\b`,
  ].join('|'),
  'i',
)

/** Tools that do something each time: that it is still being done is no reason to ask for it again. */
const acts = new RegExp(
  '(?:^|[_.-])(?:send|mail|pay|book|create|post|submit|delete|remove|update|write|insert|order|buy|transfer|start|' +
    'trigger|launch|deploy|publish|retry|cancel|approve|add|set|put|upload|charge|refund|restart|rebuild)(?![a-z])',
  'i',
)

const failed = /\b(?:fail(?:s|ed|ing|ures?)?|errors?|broken)\b/i

/** A status of HTTP, not a line or an amount: `404 Not Found`, `HTTP 410`, `https://a.example/b: 404`. */
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

/** What is absent here is what the tool itself needs. */
const needs = /\b(?:command|module|package|library|executable|interpreter|import)\b/i

/** `python: not found`, as a shell says it. */
const shell =
  /(?:^|[\s:])(?!(?:error|failed|failure|result|status|lookup)\b)[a-z][\w./+-]*: (?:command )?not found\b/i

function readFailure({ shown }: Pick<AnsweredCall, 'shown'>, content: string): AnswerMeaning {
  if (statuses.test(content)) return 'absent'
  if (!absent.test(content) || needs.test(content) || shell.test(content)) return null
  const said = new Set(listWords(content))
  // The names of arguments are the same in every call.
  const asked = listWords(shown.replaceAll(/"[^"\\]{1,64}"\s?:/g, ' '))
  return asked.some((word) => said.has(word)) ? 'absent_named' : 'absent'
}

function listWords(text: string): string[] {
  return (text.toLowerCase().match(/[a-z_]{3,}/g) ?? []).filter((word) => !common.has(word))
}

/** Words of errors and of addresses that name nothing. */
const common: ReadonlySet<string> = new Set(
  (
    'not found such the does exist error failed http https www com org net html page file link url site name user ' +
    'customer item record entry resource key query search result results match could cannot find for with'
  ).split(' '),
)
