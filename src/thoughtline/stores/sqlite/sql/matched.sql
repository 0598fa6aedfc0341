-- Which memories are meant by a filter.
SELECT json_group_array(m.number)
FROM memories AS m
CROSS JOIN sessions AS s ON s.number = m.session
CROSS JOIN tenants AS t ON t.number = s.tenant
WHERE m.entries > 0
  AND (:tenant IS NULL OR t.tenant = :tenant)
  AND (:provider IS NULL OR m.provider = :provider)
  AND (:model IS NULL OR m.model = :model)
  AND (:call IS NULL OR EXISTS (
      SELECT 1 FROM json_each(m.memo, '$.calls') AS c WHERE c.value = :call
  ))
