import { loadOnce } from '../base/lazy-load.js'

/** Only those who look at sessions of a store need them. */
export const loadSessionFunctions = loadOnce(() => import('../sessions/log/lazy-session-functions.js'))
