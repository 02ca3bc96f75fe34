/** Sessions in Postgres, for any number of machines. Needs the optional package `pg`. Node only. */
export { postgresStore, type PostgresStoreOptions } from './postgres-store.js'
