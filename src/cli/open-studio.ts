import { spawn } from 'node:child_process'
import { onceAborted } from '../core/base/abort.js'
import type { Studio, StudioOptions } from '../studio/index.js'
import type { CliIO } from './command.js'

/** Starts the studio and says where it is. */
export async function openStudio(
  options: StudioOptions,
  { stderr }: Pick<CliIO, 'stderr'>,
  { inBrowser = false } = {},
): Promise<Studio> {
  const { startStudio } = await import('../studio/index.js')
  const studio = await startStudio(options)
  stderr.write(`Studio: ${studio.url}\nOpen it in a browser on this machine; Ctrl-C ends it.\n`)
  if (inBrowser) showPage(studio.url)
  return studio
}

/** Resolves when the person interrupts. */
export function interrupted({ signal }: Pick<CliIO, 'signal'>): Promise<void> {
  return new Promise((resolve) => {
    onceAborted(signal, () => {
      resolve()
    })
  })
}

/** Where that is not possible, the address is there to be clicked. */
function showPage(url: string): void {
  const [command = '', ...args] = openers[process.platform] ?? ['xdg-open']
  const child = spawn(command, [...args, url], { detached: true, stdio: 'ignore' })
  child.on('error', () => undefined)
  child.unref()
}

const openers: Partial<Record<NodeJS.Platform, string[]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
}
