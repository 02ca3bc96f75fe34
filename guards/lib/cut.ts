/** Cuts a text to `length` UTF-16 units, ending in `…`. Never splits a code point. */
export function truncate(text: string, length: number): string {
  return text.length <= length ? text : `${takeHead(text, length)}…`
}

function takeHead(text: string, length: number): string {
  const head = text.slice(0, length - 1)
  return endsInHalf(head) ? head.slice(0, -1) : head
}

function endsInHalf(text: string): boolean {
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last <= 0xdbff
}

/** Like `truncate`, but on one line. Control characters and lone surrogates become spaces. */
export function truncateLine(text: string, length: number): string {
  return text.length <= length ? toLine(text) : `${toLine(takeHead(text, length))}…`
}

function toLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cs}]/gu, ' ')
}
