import { setTimeout as sleep } from 'node:timers/promises'
import type { LocalInspector } from '../studio/index.js'
import type { CliIO } from './command.js'

/** How long a run waits for somebody who opens the page, in milliseconds. */
const viewerTimeoutMs = 60_000

/**
 * Starts the inspector, says where to look, and waits until somebody does: a run is often over before a browser has
 * opened. Throws a StatewrightError when its packages are not installed.
 */
export async function openInspector({ stderr, signal }: CliIO): Promise<LocalInspector> {
  const { startInspector } = await import('../studio/index.js')
  const inspector = await startInspector()
  stderr.write(
    `Stately's inspector: ${inspector.url}\n` +
      `Open it in a browser: the run starts then, or after ${viewerTimeoutMs / 1000} seconds.\n`,
  )
  const enough = new AbortController()
  const waiting = AbortSignal.any([signal, enough.signal])
  await Promise.race([
    inspector.viewed,
    sleep(viewerTimeoutMs, undefined, { signal: waiting }).catch(() => undefined),
  ])
  enough.abort()
  return inspector
}
