export function quoteShellWord(text: string): string {
  // zsh expands words that start with an equals sign.
  if (/^[\w@%+=:,./-]+$/.test(text) && !text.startsWith('=')) return text
  return text.search(unprintable) >= 0 ? quoteAnsi(text) : `'${text.replaceAll("'", `'\\''`)}'`
}

/** An option with its value. Values that start with a dash are joined with an equals sign. */
export function formatShellOption(name: string, value: string): string {
  return `--${name}${value.startsWith('-') ? '=' : ' '}${quoteShellWord(value)}`
}

function quoteAnsi(text: string): string {
  const escaped = text
    .replaceAll(/[\\']/g, String.raw`\$&`)
    .replaceAll(unprintable, (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return `$'${escaped}'`
}

const unprintable = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu

/** Supports '…', "…" and `\` (within "…" only before " and \). Returns null for an unclosed quote. */
export function splitShellWords(line: string): string[] | null {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let at = 0; at < line.length; at += 1) {
    const char = line.charAt(at)
    const next = line.charAt(at + 1)
    if (char === '\\' && next !== '' && (quote === '' || (quote === '"' && '"\\'.includes(next)))) {
      word = (word ?? '') + next
      at += 1
    } else if (char === quote) {
      quote = ''
    } else if (quote === '' && (char === '"' || char === "'")) {
      quote = char
      word ??= ''
    } else if (quote === '' && /\s/.test(char)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else {
      word = (word ?? '') + char
    }
  }
  if (word !== undefined) words.push(word)
  return quote === '' ? words : null
}
