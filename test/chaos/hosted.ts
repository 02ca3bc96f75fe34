import { Host } from './provider.js'

/** A provider over HTTP for the tests of a file, and the uncaught errors since the last report. */
export function hosted(): { host: () => Host; unhandled: () => string[] } {
  let host: Host
  const stray: unknown[] = []
  const note = (error: unknown): void => void stray.push(error)

  beforeAll(async () => {
    host = await Host.open()
    process.on('unhandledRejection', note)
    process.on('uncaughtException', note)
  })

  afterAll(async () => {
    process.off('unhandledRejection', note)
    process.off('uncaughtException', note)
    await host.close()
  })

  return {
    host: () => host,
    unhandled: () => stray.splice(0).map((error) => `unhandled: ${String(error)}`),
  }
}
