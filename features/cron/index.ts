/** Public face of the cron pack. */
export { CronOrigin, cronFired, cronSection } from './contract.ts'
export { firedRecord as cronFireRecorded } from './records.ts'
