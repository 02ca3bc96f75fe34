/**
 * What Stately's editor is told: of each record the state, the event's name, the reason, and the numbers of steps, tokens
 * and USD.
 */
export interface StatelyOptions {
  /** Where the editor is. Default `https://editor.stately.ai/embed?auth=message`, which asks for no account. */
  editor?: string
  /** Tells it all that the studio shows of a record. Default false. */
  withContext?: boolean
}

/** Where Stately's editor can be embedded, without an account. */
export const editorUrl = 'https://editor.stately.ai/embed?auth=message'

/** Whether a page may be loaded from there. */
export function isWebAddress(text: unknown): boolean {
  return typeof text === 'string' && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
}
