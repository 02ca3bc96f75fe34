import { StoreError } from '../core/sessions/store/store-error.js'
import { stripControls } from '../core/format/format-words.js'

/** Replaces API calls in error messages by the equivalent commands. */
const commandReplacements: readonly (readonly [RegExp, string])[] = [
  [/agent\.fork\('([^']+)', (\d+)\)/g, 'statewright sessions fork $1 --at $2'],
  [/agent\.resume\('([^']+)'\)/g, 'statewright resume $1'],
  [/agent\.run\(input, \{ session: '([^']+)' \}\)/g, "statewright run --session $1 'Your prompt'"],
  [/delete the session, or/g, "delete the session ('statewright sessions delete'), or"],
]

/** Formats an error for the terminal, with commands instead of API calls. */
export function formatError(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error)
  const replaced = commandReplacements.reduce(
    (text, [pattern, command]) => text.replaceAll(pattern, command),
    message,
  )
  const isBusy = error instanceof StoreError && error.code === 'session_busy'
  const hint = isBusy ? ` To look at it: statewright sessions show ${error.subject ?? ''}` : ''
  return stripControls(replaced + hint).trimEnd()
}
