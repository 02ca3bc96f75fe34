/** Pieces of HTML. A `Markup` is safe; every text that goes into one is escaped. */
export interface Markup {
  readonly html: string
}

type Piece = Markup | string | number | null | false | readonly Piece[]

const escapes: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Text for HTML and for attributes in quotes. NUL and other controls, which no page shows, are left out. */
export const escapeHtml = (text: string): string =>
  text
    // oxlint-disable-next-line no-control-regex -- these are what is left out
    .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, '')
    .replaceAll(/[&<>"']/g, (letter) => escapes[letter] ?? letter)

/** A template of HTML: what is put into it is escaped, unless it is markup. */
export function html(strings: TemplateStringsArray, ...values: readonly Piece[]): Markup {
  return { html: strings.reduce((text, part, i) => text + toHtml(values[i - 1] ?? null) + part) }
}

function toHtml(piece: Piece): string {
  if (piece === null || piece === false) return ''
  if (Array.isArray(piece)) return (piece as readonly Piece[]).map(toHtml).join('')
  return typeof piece === 'object' ? (piece as Markup).html : escapeHtml(String(piece))
}
