import { createInterface } from 'node:readline'
import { whenAborted } from '../core/base/abort.js'
import type { Studio, StudioOptions } from '../studio/index.js'
import type { CliIO } from './command.js'
import { openPage } from './open-page.js'

/** Starts the studio and prints its address. */
export async function openStudio(
  options: StudioOptions,
  io: Pick<CliIO, 'stderr'>,
  { inBrowser = false } = {},
): Promise<Studio> {
  const studio = await loadStudio(options)
  const url = announceStudio(studio, io)
  if (inBrowser) openPage(url)
  return studio
}

/** Starts the studio, and prints nothing yet. */
export async function loadStudio(options: StudioOptions): Promise<Studio> {
  const { startStudio } = await import('../studio/index.js')
  return startStudio(options)
}

/** Prints the address of the studio: of its list, or of one session. */
export function announceStudio(studio: Studio, { stderr }: Pick<CliIO, 'stderr'>, session?: string): string {
  const url = studio.url + toPlace(session)
  stderr.write(`Studio: ${url}\nOpen it in a browser on this machine; Ctrl-C ends it.\n`)
  return url
}

const toPlace = (session: string | undefined): string =>
  session === undefined ? '' : `#/session/${encodeURIComponent(session)}`

/** Resolves at Ctrl-C. Until then, Enter prints an address for another browser. */
export async function waitForInterrupt(
  { signal, stdin, stderr }: Pick<CliIO, 'signal' | 'stdin' | 'stderr'>,
  studio: Studio,
  session?: string,
): Promise<void> {
  // The terminal keeps its own line editing, and Ctrl-C stays a signal.
  const lines = stdin.isTTY === true ? createInterface({ input: stdin, terminal: false }) : null
  if (lines) stderr.write('Press Enter for an address for another browser.\n')
  lines?.on('line', () => {
    stderr.write(`Studio: ${studio.url}${toPlace(session)}\n`)
  })
  await new Promise<void>((resolve) => {
    whenAborted(signal, () => {
      resolve()
    })
  })
  lines?.close()
}
