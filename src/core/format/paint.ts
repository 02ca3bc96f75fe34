/** Escape sequences that turn a style on and off again. */
const codes = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const

export type Style = keyof typeof codes

export type Paint = (style: Style, text: string) => string

/** Colours text for a terminal, or leaves it alone. */
export function createPaint(color: boolean): Paint {
  return (style, text) => {
    if (!color || text === '') return text
    const [on, off] = codes[style]
    return `\u001b[${on}m${text}\u001b[${off}m`
  }
}
