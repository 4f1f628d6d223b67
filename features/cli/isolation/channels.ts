/** Descriptors of the process, as it is started: what it says, what it is told, what it stands still for, and what ends with the server. */
export const channels = { says: 3, told: 4, answers: 5, life: 6 } as const
