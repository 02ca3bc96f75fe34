import type { Elicitation } from '../../../machines/agent/run-result.js'

type ReadAnswer = (elicitation: Elicitation, answer: unknown) => string

let reader: ReadAnswer | undefined

/**
 * Registers the function that validates answers. Only code that can ask questions imports it, so most programs never
 * load it.
 */
export function provideAnswerReader(read: ReadAnswer): void {
  reader = read
}

/**
 * Converts a person's answer to an elicitation to JSON text.
 * @throws {UsageError} `invalid_answer`, naming the field. The question stays open
 */
export function readAnswer(elicitation: Elicitation, answer: unknown): string {
  if (reader === undefined) throw new TypeError('No open session has an elicitation.')
  return reader(elicitation, answer)
}
