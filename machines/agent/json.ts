/** Anything that survives `JSON.parse(JSON.stringify(value))` unchanged. The machine holds nothing else. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json }

export type JsonObject = { [key: string]: Json }
