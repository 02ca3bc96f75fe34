import type { CommandGroup } from '../../command.js'
import { checkCommand } from './check.js'
import { deleteCommand } from './delete.js'
import { exportCommand } from './export.js'
import { forkCommand } from './fork.js'
import { listCommand } from './list.js'
import { renameCommand } from './rename.js'
import { showCommand } from './show.js'

export const sessionsCommands: CommandGroup = {
  name: 'sessions',
  about: 'Lists, shows, renames, exports, forks, deletes and checks stored sessions.',
  commands: [
    listCommand,
    showCommand,
    renameCommand,
    exportCommand,
    forkCommand,
    deleteCommand,
    checkCommand,
  ],
}
