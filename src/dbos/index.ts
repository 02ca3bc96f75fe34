/** Runs sessions in a DBOS queue, on Postgres. Needs the optional package `@dbos-inc/dbos-sdk`. Node only. */
export { dbosSessions, type DbosSessions, type DbosSessionsOptions } from './dbos-sessions.js'
export type { DbosEnqueueRequest, DbosLike, DbosQueueOptions } from './dbos-sessions.js'
