export { type Paint, painter, type Style } from '../../core/format/paint.js'

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
