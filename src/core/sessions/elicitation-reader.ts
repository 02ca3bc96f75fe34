import type { Elicitation } from '../../../machines/agent/run-result.js'

type ReadAnswer = (elicitation: Elicitation, answer: unknown) => string

let reader: ReadAnswer | undefined

/** Only code that can ask questions imports the reader, so that most programs never load it. */
export function provideAnswerReader(read: ReadAnswer): void {
  reader = read
}

/** @throws {UsageError} as `readElicitationAnswer` */
export function readAnswer(elicitation: Elicitation, answer: unknown): string {
  if (reader === undefined) throw new TypeError('No open session has an elicitation.')
  return reader(elicitation, answer)
}
