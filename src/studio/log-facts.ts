import { createTranscript } from './shown-values.js'
import type { SessionFold } from './session-fold.js'
import { normalizeText } from './session-query.js'

/** How much of what was said is searched, in characters: the beginning and the end have a half each. */
const maxChars = 8_000

/** What a log tells that the store does not list. */
export interface LogFacts {
  /** What users and the model said, as the studio shows it, without what shields withhold, secrets scrubbed; as `normalizeText` returns it. */
  text: string
  tools: readonly string[]
  models: readonly string[]
  guards: readonly string[]
}

/** Of a log that cannot be read. */
export const noFacts: LogFacts = { text: '', tools: [], models: [], guards: [] }

export function listLogFacts({ now, notes, rows, models, guards }: SessionFold): LogFacts {
  const { transcript } = createTranscript(now, notes)
  const said = transcript
    .filter(({ role, marks }) => (role === 'user' || role === 'assistant') && !marks.includes('internal'))
    .map(({ text }) => text)
    .join('\n')
  const half = maxChars / 2
  return {
    text: normalizeText(said.length > maxChars ? `${said.slice(0, half)}\n${said.slice(-half)}` : said),
    // What a compaction has left out of the transcript was called, too; what waits has not been settled.
    tools: [...new Set([...transcript, ...rows].flatMap(({ calls }) => calls.map(({ name }) => name)))],
    models: [...models],
    guards: [...guards],
  }
}
