// Recorded sessions, if present: gzip, one JSON object per line. The README in the folder describes the format.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'

/** Yields the sessions of a folder. Yields nothing when the folder does not exist. */
export function* sessionsOf(folder) {
  if (!existsSync(folder)) return
  for (const name of readdirSync(folder)
    .filter((file) => file.endsWith('.jsonl.gz'))
    .sort()) {
    const text = gunzipSync(readFileSync(new URL(name, folder))).toString()
    for (const line of text.split('\n')) if (line !== '') yield sessionOf(JSON.parse(line))
  }
}

function sessionOf({ id, source, success, steps }) {
  const tools = {}
  const recorded = steps.map(({ user = false, calls }) => ({
    user,
    calls: calls.map((call) => {
      tools[call.name] = { readOnly: call.readOnly === true }
      return {
        name: call.name,
        arguments: whole(call.arguments),
        result: whole(call.result),
        durationMs: call.ms ?? 0,
        ...statusOf(call),
      }
    }),
  }))
  return { id, source, success, steps: recorded, tools }
}

function statusOf({ ok, errorKind }) {
  if (ok !== false) return { status: 'ok' }
  return errorKind === 'unknown_tool' ? { status: 'unknown_tool' } : { status: 'error', errorKind: 'failed' }
}

/**
 * The corpus stores each cut text with a hash of the original. The letters of the hash are changed because the guards ignore
 * hexadecimal words.
 */
function whole(text) {
  return text.replace(/…\[cut from (\d+), sha256 ([\da-f]+)[^\]]*\]$/, (_, length, hash) => {
    const letters = [...hash].map((digit) => String.fromCharCode(103 + Number.parseInt(digit, 16))).join('')
    return `…[cut from ${length}, ${letters}]`
  })
}
