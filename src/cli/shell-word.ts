import { printable } from '../format/words.js'

/** A text as one word of a command line that can be copied into a shell. */
export function shellWord(text: string): string {
  const word = printable(text)
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
