import { StoreError } from '../core/sessions/store/store-error.js'
import { stripControls } from '../core/format/format-words.js'

/** What errors of the library tell to call, and the command that does the same. */
const commandReplacements: readonly (readonly [RegExp, string])[] = [
  [/agent\.fork\('([^']+)', (\d+)\)/g, 'statewright sessions fork $1 --at $2'],
  [/agent\.resume\('([^']+)'\)/g, 'statewright resume $1'],
  [/agent\.run\(input, \{ session: '([^']+)' \}\)/g, "statewright run --session $1 'Your prompt'"],
  [/delete the session, or/g, "delete the session ('statewright sessions delete'), or"],
]

/** What went wrong, in the words of the command line and fit for a terminal. */
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
