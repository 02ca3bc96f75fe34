/**
 * The words of a command line, as a shell would split them: at spaces, except in '…' and "…", and with `\` before a
 * character that is meant as it is (in "…" only before " and \). Nothing is expanded. Null when a quote is not closed.
 */
export function splitWords(line: string): string[] | null {
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
