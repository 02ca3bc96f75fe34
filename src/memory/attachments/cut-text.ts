import { cut } from '../../../guards/cut.js'

/** A text of which at most `maxChars` are kept, and a note about it when that is not all. */
export function cutText(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  return `${cut(text, maxChars)}\n\n[Cut here: only the first ${maxChars} characters are kept.]`
}
