/** A text as one word of a command line that can be copied into a shell. */
export function shellWord(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text
  return text.search(unprintable) >= 0 ? ansiQuoted(text) : `'${text.replaceAll("'", `'\\''`)}'`
}

/** What could play with the terminal is written as an escape, which bash, zsh and ksh read as what it was. */
function ansiQuoted(text: string): string {
  const escaped = text
    .replaceAll(/[\\']/g, String.raw`\$&`)
    .replaceAll(unprintable, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return `$'${escaped}'`
}

const unprintable = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu
