import { join } from 'node:path'
import { cli, folder } from '../../cli/support.js'
import { fileStore } from '../../../src/stores/file/index.js'
import type { Deed, Place, Surface, Told } from '../surface.js'
import { sender, session } from '../world.js'

/** A session folder for a command's cell, and its store. */
export async function createFolderStore() {
  const cwd = await folder({
    'end.json': { turns: [{ text: 'Done.' }], onExhausted: 'repeatLast' },
    'agents.mjs': 'export default 0',
  })
  return { cwd, store: fileStore({ dir: join(cwd, 'kept') }) }
}

/** A command's output. Its exit code reports a refusal. */
async function commanded(args: readonly string[], cwd: string): Promise<Told> {
  const { code, out, err } = await cli([...args, '--store', 'file:kept'], { cwd })
  // Exit codes 3 (stopped) and 4 (waiting for input) are valid outcomes.
  const isRefused = code === 1 || code === 2
  return { refused: isRefused ? `exit ${code}` : null, shown: out + err }
}

const rehearsal = '--rehearsal=end.json'

function command(
  of: string,
  does: Deed,
  args: (place: Place) => string[],
  more: Partial<Pick<Surface, 'as' | 'isSilent'>> = {},
): Surface {
  return {
    of: `statewright ${of}`,
    does,
    knows: 'operator',
    agents: 'none',
    ...more,
    use: (place) => commanded([...of.split(' '), ...args(place)], place.cwd ?? ''),
  }
}

const call = ({ question: { callId, fingerprint } }: Place): string => `${callId}@${fingerprint}`

/** Commands that access a session. The agent of a command is unnamed. */
export const cliSurfaces: Surface[] = [
  command('run', 'begin', () => [rehearsal, '--session', session, 'Again.']),
  command('resume', 'continue', () => [session, rehearsal]),
  command('resume', 'answer', (place) => [session, rehearsal, '--approve', call(place), '--by', sender]),
  command('send', 'answer', (place) => [session, 'approve', call(place), '--by', sender]),
  command('send', 'answer', (place) => [session, 'reject', call(place), 'No.', '--by', sender], {
    as: 'a rejection',
  }),
  command('send', 'grant', () => [session, 'grant', 'lend', '--by', sender], { as: 'a grant' }),
  command('send', 'revoke', ({ grant }) => [session, 'revoke', grant, '--by', sender], {
    as: 'a revocation',
  }),
  command('grants', 'look', () => [session], { isSilent: true }),
  command('send', 'steer', () => [session, 'steer', 'Be quick.'], { as: 'a message for now' }),
  command('send', 'steer', () => [session, 'pause'], { as: 'a pause' }),
  command('send', 'stop', () => [session, 'cancel']),
  command('send', 'stop', () => ['--all', '--prefix', 'ann', 'cancel'], { as: 'many' }),
  command('guards', 'look', () => [session], { isSilent: true }),
  command('sessions list', 'look', () => []),
  command('sessions show', 'look', () => [session]),
  command('sessions export', 'look', () => [session]),
  command('sessions fork', 'fork', () => [session]),
  command('sessions delete', 'forget', () => [session, '--yes']),
]
