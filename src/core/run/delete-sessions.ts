import { readElapsed, wait } from '../base/clock.js'
import { optionError, UsageError } from '../base/errors.js'
import { expectKnownOptions } from '../config/other-names.js'
import { deleteSession } from '../sessions/delete-session.js'
import { leaseMs } from '../sessions/log/lease.js'
import { restoreSummary } from '../sessions/session-summary.js'
import { checkListOptions, isListed, type ListOptions } from '../sessions/store/list-options.js'
import type { SessionTags } from '../sessions/store/session-tags.js'
import type { ListedSession, SessionStore } from '../sessions/store/store.js'
import { isSessionBusy } from '../sessions/store/store-error.js'
import type { StoreParts } from '../sessions/open-session.js'
import { sendToStoredSession } from './send-to-stored-session.js'

/** Selects sessions by prefix, by tags, or by both, such as `{ tags: { user: 'ann' } }`. */
export type SessionOwner = { prefix: string; tags?: SessionTags } | { tags: SessionTags; prefix?: string }

const pageSize = 100

/** In milliseconds. A killed process holds its session this long; a cancelled run releases its session sooner. */
const longestWaitMs = leaseMs + 5_000
const retryMs = 100

/**
 * Deletes all sessions of an owner, page by page. Active runs are cancelled first. Returns the number of deleted
 * sessions, including sub-agents. After an error, call it again to delete the remaining sessions.
 * @throws {UsageError} `invalid_option`
 * @throws {StoreError} `session_busy` for a session that is still held half a minute after its run was cancelled, …
 */
export async function deleteSessions(parts: StoreParts, owner: SessionOwner): Promise<number> {
  const checkedOwner = checkOwner(owner)
  let deleted = 0
  // Deleting a session also deletes its sub-agents' sessions. Sub-agent sessions without a parent are deleted in a
  // second pass.
  for (const children of [false, true]) {
    let found: number
    do {
      found = 0
      for await (const { id } of listSessions(parts.store, { ...checkedOwner, children })) {
        found += 1
        deleted += await deleteWhenFree(parts, id)
      }
      // Sessions written in the meantime have moved to the front of the list.
    } while (found > 0)
  }
  await parts.store.purge?.()
  return deleted
}

function checkOwner(owner: SessionOwner): ListOptions {
  if (typeof owner !== 'object' || owner === null || !('prefix' in owner || 'tags' in owner))
    throw optionError(
      "deleteSessions needs a filter for the sessions to delete: { prefix: 'ann' } or { tags: { user: 'ann' } }.",
      'owner',
    )
  expectKnownOptions('deleteSessions', owner, ['prefix', 'tags'])
  const { prefix, tags } = checkListOptions(owner)
  // A copy, because each page's options would lose inherited keys and list the sessions of all owners.
  return { ...(prefix !== null && { prefix }), ...(tags.length > 0 && { tags: Object.fromEntries(tags) }) }
}

/** Lists the sessions page by page. Applies the filter again, because custom stores may ignore it. */
export async function* listSessions(
  store: SessionStore,
  options: ListOptions,
  limit = pageSize,
): AsyncGenerator<ListedSession> {
  const filter = checkListOptions(options)
  let after: ListedSession | undefined
  do {
    const page = await store.list({ ...options, limit, after })
    for (const entry of page) {
      const session = await restoreSummary(store, entry)
      if (isListed(filter, session)) yield session
    }
    after = page.length === limit ? page.at(-1) : undefined
  } while (after)
}

async function deleteWhenFree(parts: StoreParts, sessionId: string): Promise<number> {
  const { store, clock } = parts
  const giveUpAt = readElapsed(clock) + longestWaitMs
  let cancelled: string | null = null
  for (;;) {
    try {
      return await deleteSession(store, clock, sessionId)
    } catch (error) {
      if (!isSessionBusy(error) || readElapsed(clock) >= giveUpAt) throw error
    }
    const holder = (await store.get(sessionId))?.holder ?? null
    // Another run may start in the meantime.
    if (holder !== null && holder !== cancelled) {
      const cancel = { type: 'cancel', why: 'Its session was deleted.' } as const
      await sendToStoredSession(parts, sessionId, cancel).catch((error: unknown) => {
        if (!(error instanceof UsageError)) throw error
      })
    }
    cancelled = holder
    await wait(clock, retryMs)
  }
}
