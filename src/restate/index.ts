/** Runs sessions as Restate virtual objects. Needs the optional package `@restatedev/restate-sdk`, and Node 22. */
export {
  restateSessions,
  type RestateSessions,
  type RestateSessionsOptions,
  type RestateTurn,
} from './restate-sessions.js'
export type { RestateLike } from './restate-sessions.js'
