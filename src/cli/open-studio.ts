import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { whenAborted } from '../core/base/abort.js'
import type { Studio, StudioOptions } from '../studio/index.js'
import type { CliIO } from './command.js'

export async function loadStudio(options: StudioOptions): Promise<Studio> {
  const { startStudio } = await import('../studio/index.js')
  return startStudio(options)
}

/** Prints the address of the studio's list, or of a page in it. */
export function announceStudio(studio: Studio, { stderr }: Pick<CliIO, 'stderr'>, session?: string): string {
  const url = studio.url + toPlace(session)
  const end = session === undefined ? '; Ctrl-C ends it.' : '.'
  stderr.write(`Studio: ${url}\nOpen it in a browser on this machine${end}\n`)
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
  // The terminal keeps its own line editing, and Ctrl-C remains a signal.
  const lines = stdin.isTTY === true ? createInterface({ input: stdin, terminal: false }) : null
  if (lines) stderr.write('Press Enter to get an address for another browser.\n')
  lines?.on('line', () => void stderr.write(`Studio: ${studio.url}${toPlace(session)}\n`))
  await new Promise<void>((resolve) => void whenAborted(signal, () => resolve()))
  lines?.close()
}

/** Opens a page in the user's browser. Failures are ignored, because the caller prints the address too. */
export function openPage(url: string): void {
  const openers: Partial<Record<NodeJS.Platform, string[]>> = {
    darwin: ['open'],
    // Avoids `cmd /c start`, because `cmd` treats the & in an address as the end of the command.
    win32: ['rundll32', 'url.dll,FileProtocolHandler'],
  }
  const [command = '', ...args] = openers[process.platform] ?? ['xdg-open']
  const child = spawn(command, [...args, url], { detached: true, stdio: 'ignore' })
  child.on('error', () => undefined)
  child.unref()
}
