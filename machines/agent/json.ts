export type { Json, JsonObject } from '../../guards/lib/json.js'
