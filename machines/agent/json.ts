/** The types of all values in the machine. */
export type { Json, JsonObject } from '../../guards/lib/json.js'
