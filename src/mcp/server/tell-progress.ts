import type * as ServerSdk from '@modelcontextprotocol/server'
import type { AccessGrant } from '../../web/authorize.js'
import type { TaskDesk } from './task-desk.js'

/** Tells a plain call how its run comes along, where the client asks for it. Returns what ends it. */
export function tellProgress(
  desk: TaskDesk,
  id: string,
  grant: AccessGrant,
  { mcpReq }: ServerSdk.ServerContext,
): () => void {
  const token = mcpReq['_meta']?.progressToken
  const stop = new AbortController()
  if (token === undefined) return () => undefined
  const tell = async (): Promise<void> => {
    let progress = 0
    for await (const message of desk.follow(id, grant, stop.signal)) {
      progress += 1
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken: token, progress, message },
      })
    }
  }
  // Progress is a courtesy: the result is told in any case.
  tell().catch(() => undefined)
  return () => stop.abort()
}
