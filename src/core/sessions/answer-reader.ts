import type { Elicitation } from '../../../machines/agent/run-result.js'

type ReadAnswer = (elicitation: Elicitation, given: unknown) => string

let reader: ReadAnswer | undefined

/** What asks, and what opens a session in which something may be asked, brings the check of answers: most programs load none. */
export function provideAnswerReader(read: ReadAnswer): void {
  reader = read
}

/**
 * The answer of a person to an elicitation, as JSON text.
 * @throws {UsageError} `invalid_answer`, naming the field; the question stays
 */
export function readAnswer(elicitation: Elicitation, given: unknown): string {
  if (reader === undefined) throw new TypeError('No session was opened in which something is asked.')
  return reader(elicitation, given)
}
