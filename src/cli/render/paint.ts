import { styleText } from 'node:util'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

export type Paint = (style: Style, text: string) => string

/** Colours text, or leaves it alone. */
export function painter(color: boolean): Paint {
  return color
    ? (style, text) => (text === '' ? '' : styleText(style, text, { validateStream: false }))
    : (_style, text) => text
}

/** Whether a stream gets colours: FORCE_COLOR decides, then NO_COLOR, then whether it is a terminal. */
export function wantsColor(
  stream: { isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  const forced = env.FORCE_COLOR
  if (forced !== undefined) return forced !== '0' && forced !== 'false'
  if (env.NO_COLOR) return false
  return stream.isTTY === true && env.TERM !== 'dumb'
}
