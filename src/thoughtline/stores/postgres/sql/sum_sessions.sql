-- What sessions hold; the parameter is a tenant.
SELECT count(*) AS sessions, coalesce(sum(last + 1), 0) AS events, coalesce(sum(turns), 0) AS turns,
       min(oldest) AS oldest, max(newest) AS newest
FROM sessions WHERE $1::bytea IS NULL OR tenant = $1
