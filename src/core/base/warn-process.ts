/** A warning of the platform: of the process, or in the console where there is none. */
export function warnProcess(sentence: string, code?: string): void {
  const { process } = globalThis as { process?: { emitWarning?: (message: string, how: object) => void } }
  const how = { type: 'StatewrightWarning', ...(code !== undefined && { code }) }
  if (process?.emitWarning) process.emitWarning(sentence, how)
  // oxlint-disable-next-line no-console -- browsers have no other place
  else console.warn(sentence)
}
